"""The program that a test becomes: code of a user's, which is followed."""


def of(test, args, options, lift, tell):
    """The test as a function of one number, with the arguments that its fixtures gave."""

    def program(t):
        with tell:  # no `except`, which would catch what the program raises as it runs
            test(*map(lift, args), **{name: lift(value) for name, value in options.items()})
        return t

    return program
