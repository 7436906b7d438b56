"""What becomes of an argument's bytes: pct decodes them by the locale and encodes them as UTF-8 (contract 1, point 5)."""

import locale


def is_utf8(environment: dict[str, str]) -> bool:
    """Whether the caller's locale is a UTF-8 one that exists on this machine; no locale at all is C."""
    wanted = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "C"
    try:
        locale.setlocale(locale.LC_CTYPE, wanted)
    except locale.Error:
        return False
    return locale.nl_langinfo(locale.CODESET).upper().replace("-", "") == "UTF8"


def decode(word: bytes, utf8: bool) -> str:
    """In a UTF-8 locale only what is no UTF-8 is lost; in another every byte above 127. What is lost is U+FFFD."""
    return word.decode("utf-8", "replace") if utf8 else word.decode("ascii", "replace")
