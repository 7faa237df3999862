"""Numbers after words in a kernel file whose words keep their order from one read to the next."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.kernel.procfs import counts

KILOBYTES = b"kB"
Getter = Callable[[Sequence[bytes]], tuple[bytes, ...]]


class WordTable:
    """Whole numbers by column, from a file of `word number` or `word number kB`.

    The place of each word is learnt once, and again when one has moved: so a read takes a few calls, however many
    columns there are. `sizes` are followed by kB.
    """

    def __init__(self, numbers: Mapping[bytes, str], sizes: Mapping[bytes, str] | None = None) -> None:
        self._numbers = numbers
        self._sizes = sizes or {}
        self._columns: tuple[str, ...] = ()
        self._words: tuple[bytes, ...] = ()
        self._word_places: Getter = itemgetter(0, 0)
        self._number_places: Getter = itemgetter(0, 0)

    def read(self, content: bytes, path: str) -> dict[str, int]:
        """Return the numbers of those of the words that the file has.

        Raises: MalformedError naming the file, also when it has none of the words.
        """
        fields = content.split()
        try:
            if self._word_places(fields) != self._words:
                self._learn(fields, path)
            numbers = self._number_places(fields)
        except IndexError:
            self._learn(fields, path)
            numbers = self._number_places(fields)
        return dict(zip(self._columns, counts(numbers, path), strict=True))

    def _learn(self, fields: Sequence[bytes], path: str) -> None:
        columns, words, numbers = [], {}, []
        for place, word in enumerate(fields[:-1]):
            column = self._numbers.get(word) or self._sizes.get(word)
            if column is None or column in columns:
                continue
            words[place] = word
            if word in self._sizes:
                words[place + 2] = KILOBYTES
                if fields[place + 2 : place + 3] != [KILOBYTES]:
                    raise MalformedError(f"{path}: {word!r:.80}: expected a number of kB, found {fields[place:][:3]}")
            columns.append(column)
            numbers.append(place + 1)
        if not columns:
            raise MalformedError(f"{path}: expected words and numbers, found {b' '.join(fields[:4])!r:.80}")
        # An itemgetter of one place would give no tuple.
        self._word_places = itemgetter(*words, *words) if len(words) == 1 else itemgetter(*words)
        self._words = self._word_places(fields)
        self._number_places = itemgetter(*numbers, numbers[-1])
        self._columns = (*columns, columns[-1])
