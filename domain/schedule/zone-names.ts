import windowsZones from 'cldr-core/supplemental/windowsZones.json' with { type: 'json' };

/** CLDR's territory code for the world, which marks a zone's default mapping. */
const WORLD = '001';

let ianaByWindowsName: ReadonlyMap<string, string> | null = null;

/** The IANA zone of a Windows name (`Pacific Standard Time`) by CLDR; null if unknown. */
export function ianaZoneOf(windowsName: string): string | null {
  ianaByWindowsName ??= new Map(
    windowsZones.supplemental.windowsZones.mapTimezones
      .filter(({ mapZone }) => mapZone._territory === WORLD)
      .map(({ mapZone }) => [mapZone._other.toLowerCase(), mapZone._type]),
  );
  return ianaByWindowsName.get(windowsName.trim().toLowerCase()) ?? null;
}

/** Message for an unknown zone; for a Windows zone name it gives the IANA name. */
export function unknownZoneMessage(name: string): string {
  const iana = ianaZoneOf(name);
  if (iana !== null) return `"${name}" is a Windows zone name; its IANA zone is "${iana}"`;
  return `"${name}" is not a time zone of the tz database`;
}
