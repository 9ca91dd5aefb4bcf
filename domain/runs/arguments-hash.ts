import { sha256 } from '../ids.ts';
import type { JsonValue } from '../json.ts';

/**
 * The SHA-256, in hexadecimal, of a step's arguments as canonical JSON (RFC 8785): without spaces, the members of
 * objects sorted by name.
 */
export function argumentsHash(args: JsonValue): string {
  return sha256(canonicalJson(args));
}

function canonicalJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value))
    return `[${(value as readonly JsonValue[]).map(canonicalJson).join(',')}]`;
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const written = members.map(
    ([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`,
  );
  return `{${written.join(',')}}`;
}
