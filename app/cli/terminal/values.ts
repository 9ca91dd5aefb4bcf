import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isRepresentable, lostIssue, lostNumbers } from '../../../domain/exact-numbers.ts';
import { setOwn } from '../../../domain/pipeline/set-own.ts';
import { InterruptedError, messageOf, usageError } from '../calling/command-errors.ts';
import type { CliEnvironment } from '../calling/cli-environment.ts';

/**
 * Parses a value of the command line as JSON, or returns the string if it is not JSON.
 * @param name of the option or argument, for the message
 * @throws CommandError for a number that JavaScript cannot represent
 */
export function parseValue(text: string, name: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const [lost] = lostNumbers(text);
  if (lost !== undefined) throw inexactNumber(name, lost.path, lost.digits);
  return value;
}

/**
 * Reads JSON or YAML from a file, or from standard input for `-`.
 * @throws CommandError with the file and line if it can't be read or parsed, or has a number that JavaScript cannot
 *   represent; InterruptedError
 */
export async function readDocument(name: string, source: InputSource): Promise<unknown> {
  const text = await readText(name, source);
  let document: unknown;
  try {
    document = parse(text, { intAsBigInt: true }) as unknown;
  } catch (error) {
    throw usageError(`${name}: ${messageOf(error).split('\n', 1)[0]}`);
  }
  return withNumbers(name, document);
}

/** Reads an object from an argument: inline JSON, or `@file` in JSON or YAML. @throws CommandError */
export async function readObject(
  argument: string,
  name: string,
  source: InputSource,
): Promise<Readonly<Record<string, unknown>>> {
  const value = argument.startsWith('@')
    ? await readDocument(argument.slice(1), source)
    : parseValue(argument, name);
  if (isObject(value)) return value;
  throw usageError(`${name} must be a JSON object, or @file with one`);
}

type InputSource = Pick<CliEnvironment, 'input'>;

/**
 * Reads a file, or standard input for `-`.
 * @throws CommandError if it cannot be read; InterruptedError
 */
export async function readText(name: string, { input }: InputSource): Promise<string> {
  try {
    return name === '-' ? await input() : readFileSync(name, 'utf8');
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    throw usageError(`${name} can't be read: ${messageOf(error)}`);
  }
}

function inexactNumber(name: string, path: readonly string[], digits: string): Error {
  const where = path.length === 0 ? '' : `${path.join('.')}: `;
  return usageError(`${name}: ${where}${lostIssue({ digits })}`);
}

/** Replaces the bigints of a YAML document by numbers. @throws CommandError if that loses digits, and for `.inf` and `.nan` */
function withNumbers(name: string, document: unknown): unknown {
  // Anchors can make a document contain one object several times, even in itself.
  const seen = new Set<unknown>();
  const convert = (value: unknown, path: readonly string[]): unknown => {
    if (typeof value === 'bigint' || typeof value === 'number') {
      const isExact =
        typeof value === 'bigint' ? isRepresentable(`${value}`) : Number.isFinite(value);
      if (isExact) return Number(value);
      throw inexactNumber(name, path, String(value));
    }
    if (typeof value !== 'object' || value === null || seen.has(value)) return value;
    seen.add(value);
    const members = value as Record<string, unknown>;
    for (const [key, member] of Object.entries(members)) {
      setOwn(members, key, convert(member, [...path, key]));
    }
    return value;
  };
  return convert(document, []);
}

/** Whether a value is an object and not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Encodes an id as a segment of a path.
 * @throws CommandError for an empty id, `.` and `..`, which URLs drop
 */
export function pathSegment(id: string | undefined): string {
  if (id === undefined || id === '') throw usageError('an id is empty');
  if (id === '.' || id === '..') throw usageError(`"${id}" is not an id`);
  return encodeURIComponent(id);
}
