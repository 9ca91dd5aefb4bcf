import windowsZones from 'cldr-core/supplemental/windowsZones.json' with { type: 'json' };

/** CLDR's territory for a name without one: the world. */
const WORLD = '001';

let table: ReadonlyMap<string, string> | null = null;

/** The IANA zone of a Windows zone name (`Pacific Standard Time`), by CLDR's table; null for any other name. */
export function ianaZoneOf(windowsName: string): string | null {
  table ??= new Map(
    windowsZones.supplemental.windowsZones.mapTimezones
      .filter(({ mapZone }) => mapZone._territory === WORLD)
      .map(({ mapZone }) => [mapZone._other.toLowerCase(), mapZone._type]),
  );
  return table.get(windowsName.trim().toLowerCase()) ?? null;
}

/** Says that a name is no zone, and which zone it means where Windows has that name. */
export function unknownZone(name: string): string {
  const iana = ianaZoneOf(name);
  if (iana !== null) return `"${name}" is a Windows zone name; its IANA zone is "${iana}"`;
  return `"${name}" is not a zone of the tz database here`;
}
