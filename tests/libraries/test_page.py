from page import table, written


def test_the_page_of_libraries_says_what_is_checked():
    assert written() == table()
