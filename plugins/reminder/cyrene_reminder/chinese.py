"""Say a Chinese time phrase in the plain English that the readers of this package take."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["has_chinese", "in_plain_english"]

_DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_WEEKDAYS = dict(zip("一二三四五六日天", ["mon", "tue", "wed", "thu", "fri", "sat", "sun", "sun"], strict=True))
_UNITS = {
    "秒": "seconds",
    "秒钟": "seconds",
    "分": "minutes",
    "分钟": "minutes",
    "小时": "hours",
    "钟头": "hours",
    "天": "days",
    "日": "days",
    "周": "weeks",
    "星期": "weeks",
    "礼拜": "weeks",
    "月": "months",
    "年": "years",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_HALF = r"半个?(?:小时|钟头|月)|半年"
_AMOUNT = rf"(?:{_HALF}|\d+刻钟|\d+(?:\.\d+)?个?半?(?:{_UNIT})半?)"
_WEEK = r"(?:周|星期|礼拜)"
_WHICH = r"(?P<which>下+|[这本])?个?"

_Say = str | Callable[[re.Match[str]], str]


def has_chinese(text: str) -> bool:
    """Tell whether a text has a Chinese character."""
    return re.search(r"[\u3400-\u9fff]", text) is not None


def in_plain_english(phrase: str) -> str:
    """Return a phrase with all Chinese that is known said in English; what is not known stays as it is.

    Args:
        phrase: in lower case, full-width characters made plain; English in it is kept.
    """
    for pattern, say in _STEPS:
        phrase = pattern.sub(say, phrase)
    return phrase


def _number(match: re.Match[str]) -> str:
    """十二 → 12, 二十 → 20, 一百零五 → 105, 二零二六 → 2026."""
    written = match[0]
    if not re.search("[十百]", written):
        return "".join(str(_DIGITS[digit]) for digit in written)
    hundreds, hundred, rest = written.rpartition("百")
    tens, ten, ones = rest.rpartition("十")
    value = 100 * _DIGITS.get(hundreds, 1) * bool(hundred) + 10 * _DIGITS.get(tens[-1:], 1) * bool(ten)
    return str(value + _DIGITS.get(ones[-1:], 0))


def _which(match: re.Match[str]) -> str:
    """下下 → next next, 这 → this."""
    which = match["which"] or ""
    return " next" * len(which) if which.startswith("下") else " this" if which else ""


def _weekdays(match: re.Match[str]) -> str:
    return f"{_which(match)} {' '.join(_WEEKDAYS[day] for day in match['days'])} "


def _span(match: re.Match[str]) -> str:
    """过1个半小时 → in 1.5 hours; 2天前 → 2 days ago."""
    said = " ".join(_amount(amount) for amount in re.findall(_AMOUNT, match[0]))
    return f" {said} ago " if match[0].endswith("前") else f" in {said} "


def _amount(amount: str) -> str:
    if amount.startswith("半"):
        return {"时": "30 minutes", "头": "30 minutes", "月": "15 days", "年": "6 months"}[amount[-1]]
    if amount.endswith("刻钟"):
        return f"{15 * int(amount[:-2])} minutes"
    count, unit = re.findall(rf"([\d.]+)|({_UNIT})", amount)
    return f"{count[0]}{'.5' if '半' in amount else ''} {_UNITS[unit[1]]}"


def _date(match: re.Match[str]) -> str:
    """2026年12月24日 → 24 dec 2026, 明年3月5日 → 5 mar next year."""
    month = int(match["month"])
    if not 1 <= month <= len(_MONTHS):
        return match[0]
    year = {"今": " this year", "明": " next year", "后": " next next year", None: ""}.get(
        match["year"], f" {match['year']}"
    )
    return f" {match['day']} {_MONTHS[month - 1]}{year} "


def _clock(match: re.Match[str]) -> str:
    """8点半 → 8:30, 8点3刻 → 8:45, 25点 → 25:00."""
    past = match["past"] or "0"
    minute = 30 if past == "半" else 15 * int(past[:-1]) if past.endswith("刻") else int(past.removesuffix("分"))
    return f" {match['hour']}:{minute:02} "


def _clock_short_of(match: re.Match[str]) -> str:
    """差1刻8点 → 7:45."""
    short = 15 * int(match["short"]) if match["unit"] == "刻" else int(match["short"])
    hour, minute = divmod(60 * int(match["hour"]) - short, 60)
    return f" {hour}:{minute:02} "


# In this order: what comes later would take a part of what comes before.
_SAID: list[tuple[str, _Say]] = [
    (r"(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff\d])|(?<=\d)\s+(?=[\u3400-\u9fff])", ""),
    (rf"{_WEEK}一(?:到|至|-|~){_WEEK}?五|(?:个|的)?工作日", " weekday "),
    (rf"{_WHICH}(?:周|星期|礼拜)末", lambda match: f"{_which(match)} weekend "),
    (rf"{_WHICH}{_WEEK}(?P<days>[一二三四五六日天]+)(?![点时刻半分:])", _weekdays),
    (r"[零〇一二两三四五六七八九十百]+", _number),
    (rf"再?过{_AMOUNT}+(?:[之以]?后)?|{_AMOUNT}+[之以]?[后前]", _span),
    (r"大后(?:天|日)", " today plus 3 "),
    (r"后(?:天|日)", " today plus 2 "),
    (r"明(?:天|日|儿)|明(?=早|晚)", " tomorrow "),
    (r"今(?:天|日|儿)|今(?=早|晚|夜)", " today "),
    (r"前(?:天|日)", " 2 days ago "),
    (r"昨(?:天|日|儿)?", " yesterday "),
    (r"(?:(?P<year>\d{4}|[今明后])年的?)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]?", _date),
    (r"每个?月(?:底|末|的?最后1天)", " every month end "),
    (rf"{_WHICH}月(?:底|末|的?最后1天)", lambda match: f" end of{_which(match) or ' the'} month "),
    (r"(?P<which>今|明|)年(?:底|末)", lambda m: f" end of {'next' if m['which'] == '明' else 'the'} year "),
    (r"每个?月的?(?P<day>\d{1,2})[日号]", r" every month day \g<day> "),
    (rf"{_WHICH}月的?(?P<day>\d{{1,2}})[日号]", lambda match: f"{_which(match)} month day {match['day']} "),
    (r"(?P<day>\d{1,2})[日号]", r" day \g<day> "),
    (rf"(?P<which>下+)个?(?:{_WEEK}|(?P<month>月))", lambda m: f"{_which(m)} {'month' if m['month'] else 'week'} "),
    (r"明年", " next year "),
    (r"每1?[天日]|天天", " every day "),
    (r"每(?=早|晚|上午|中午|下午)", " every day "),
    (rf"每个?1?{_WEEK}", " every week "),
    (r"每个?月", " every month "),
    (r"每隔?个?", " every "),
    (r"凌晨", " dawn "),
    (r"半夜|午夜|子夜", " midnight "),
    (r"下午|午后", " afternoon "),
    (r"上午|早上|早晨|清晨|清早|早", " morning "),
    (r"中午|正午", " noon "),
    (r"傍晚|晚上|晚间|夜里|夜晚|晚|夜", " evening "),
    (r"差(?P<short>\d{1,2})(?P<unit>刻|分)钟?到?(?P<hour>\d{1,2})(?:点钟?|时)", _clock_short_of),
    (r"(?P<hour>\d{1,2})(?:点钟?|时)差(?P<short>\d{1,2})(?P<unit>刻|分)", _clock_short_of),
    (r"(?P<hour>\d+)(?:点钟?|时)整?(?P<past>半|[123]刻|\d{1,2}分?)?钟?", _clock),
    (r"[的在于和跟、]", " "),
]
_STEPS = [(re.compile(pattern), say) for pattern, say in _SAID]
