"""Write what passes make of the cases in tests/passes/texts that do not say it yet."""

from pass_texts import FOLDER, complete, passes

if __name__ == "__main__":
    for name, rewrite in passes().items():
        complete(FOLDER / f"{name}.txt", rewrite)
