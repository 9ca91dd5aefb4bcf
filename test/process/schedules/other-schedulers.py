"""Says when rules fire by python-dateutil and croniter. Reads a JSON array of cases, writes one of answers.

`model` follows the service's rules for clock changes: the library works in wall time or in UTC, where no clock changes,
and the times are put into the zone here. `library` is what the library says by itself in that zone.
All times are seconds since 1970.
"""

import json
import sys
from datetime import datetime, timedelta, timezone
from itertools import islice
from zoneinfo import ZoneInfo

from croniter import croniter
from dateutil.rrule import rrulestr

UTC = timezone.utc
MAX_TIMES = 60_000


def seconds(moment):
    return int(moment.timestamp())


def fixed(walls, zone):
    """Each wall time once: by the offset before the change in a gap, the first of two in an overlap (PEP 495)."""
    for wall in walls:
        yield seconds(wall.replace(tzinfo=zone, fold=0).astimezone(UTC))


def elapsed(walls, zone):
    """Each wall time as often as the clock shows it."""
    for wall in walls:
        passes = {seconds(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)) for fold in (0, 1)}
        for at in sorted(passes):
            if datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0) == wall:
                yield at


def first(times, after, count):
    """The first times in order. Clock changes move times by at most a day, so it looks two days ahead."""
    found = set()
    limit = None
    for at in islice(times, MAX_TIMES):
        if limit is not None and at > limit:
            return sorted(found)[:count]
        if at <= after:
            continue
        found.add(at)
        if limit is None and len(found) >= count:
            limit = sorted(found)[count - 1] + 2 * 86_400
    return sorted(found)[:count] if limit is not None else None


def is_on(local, limits):
    days = limits.get('BYDAY')
    if days is not None and local.weekday() not in days:
        return False
    if 'BYMONTH' in limits and local.month not in limits['BYMONTH']:
        return False
    if 'BYMONTHDAY' in limits and local.day not in limits['BYMONTHDAY']:
        return False
    return True


def by_hours(case, start, zone):
    """An hourly rule with BYMINUTE: minutes of every n-th hour, counted in real time."""
    begun = start.astimezone(zone).replace(minute=0, second=0).astimezone(UTC)
    for index in range(MAX_TIMES):
        slot = begun + timedelta(hours=index * case['interval'])
        for minute in case['minutes']:
            yield slot + timedelta(minutes=minute, seconds=start.second)


def rrule_model(case, zone):
    start = datetime.strptime(case['start'], '%Y%m%dT%H%M%S')
    begun = start.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if not case['elapsed']:
        times = fixed(rrulestr(case['rule'], dtstart=start), zone)
    elif case['minutes']:
        times = (seconds(at) for at in by_hours(case, begun, zone) if is_on(at.astimezone(zone), case['limits']))
    else:
        bare = f"FREQ={case['freq']};INTERVAL={case['interval']}"
        regular = rrulestr(bare, dtstart=begun)
        times = (seconds(at) for at in regular if is_on(at.astimezone(zone), case['limits']))
    return first(times, seconds(begun) - 1, case['count'])


def rrule_library(case, zone):
    start = datetime.strptime(case['start'], '%Y%m%dT%H%M%S').replace(tzinfo=zone)
    return [seconds(at.astimezone(UTC)) for at in islice(rrulestr(case['rule'], dtstart=start), case['count'])]


def cron_walls(case, wall):
    times = croniter(case['expr'], wall, day_or=case['day_or'])
    while True:
        yield times.get_next(datetime)


def cron_model(case, zone):
    after = case['after']
    wall = datetime.fromtimestamp(after, zone).replace(tzinfo=None, fold=0) - timedelta(days=1)
    place = elapsed if case['elapsed'] else fixed
    return first(place(cron_walls(case, wall), zone), after, case['count'])


def cron_library(case, zone):
    times = croniter(case['expr'], datetime.fromtimestamp(case['after'], zone))
    return [seconds(times.get_next(datetime)) for _ in range(case['count'])]


def answer(case):
    zone = ZoneInfo(case['zone'])
    model, library = (rrule_model, rrule_library) if case['kind'] == 'rrule' else (cron_model, cron_library)
    answered = {}
    for name, ask in (('model', model), ('library', library)):
        try:
            answered[name] = ask(case, zone)
        except Exception as error:  # Whatever a library says of a rule is its answer.
            answered[name] = None
            answered[f'{name}_error'] = f'{type(error).__name__}: {error}'
    return answered


def offsets(asked):
    zone = ZoneInfo(asked['zone'])
    return [
        int(datetime.fromtimestamp(at, zone).utcoffset().total_seconds())
        for at in range(asked['from'], asked['to'], asked['step'])
    ]


given = json.load(sys.stdin)
json.dump(
    {'cases': [answer(case) for case in given['cases']], 'offsets': [offsets(asked) for asked in given['offsets']]},
    sys.stdout,
)
