import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { parse } from 'yaml';
import { setOwn } from '../../../domain/pipeline/own.ts';
import { isRepresentable, lostIssue, lostNumbers } from '../../../domain/exact-numbers.ts';
import { BrokenOff, usageFault } from '../calling/faults.ts';
import type { Surroundings } from '../calling/surroundings.ts';

/** Reads an option that is a whole number within bounds. */
export function wholeNumberOf(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= from && value <= to) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  };
}

/** Reads an option that is a number above 0. */
export function rateOf(text: string): number {
  const rate = Number(text);
  if (Number.isFinite(rate) && rate > 0) return rate;
  throw new InvalidArgumentError('It must be a number above 0.');
}

/** Reads an option that may be given several times. */
export function several(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

/**
 * A value as it is written on a command line: JSON where it is JSON, and else the text itself.
 * @param name of the option or argument, for the message
 * @throws CommandFault for a number that JavaScript cannot represent
 */
export function valueOf(text: string, name: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const [lost] = lostNumbers(text);
  if (lost !== undefined) throw lostFault(name, lost.path, lost.digits);
  return value;
}

/**
 * The JSON or YAML of a file, or of the standard input for `-`.
 * @throws CommandFault where it can't be read, or is neither, naming the file and the line, and for a number that
 *   JavaScript cannot represent, naming its place; BrokenOff
 */
export async function readDocument(
  name: string,
  { input }: Pick<Surroundings, 'input'>,
): Promise<unknown> {
  const text = await readText(name, { input });
  let document: unknown;
  try {
    document = parse(text, { intAsBigInt: true }) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw usageFault(`${name}: ${why}`);
  }
  return withNumbers(document, (path, digits) => lostFault(name, path, digits));
}

/**
 * The text of a file, or of the standard input for `-`.
 * @throws CommandFault where it cannot be read; BrokenOff
 */
export async function readText(
  name: string,
  { input }: Pick<Surroundings, 'input'>,
): Promise<string> {
  try {
    return name === '-' ? await input() : readFileSync(name, 'utf8');
  } catch (error) {
    if (error instanceof BrokenOff) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw usageFault(`${name} can't be read: ${why}`);
  }
}

function lostFault(name: string, path: readonly string[], digits: string): Error {
  const where = path.length === 0 ? '' : `${path.join('.')}: `;
  return usageFault(`${name}: ${where}${lostIssue({ digits })}`);
}

/**
 * Puts numbers in the place of the integers of a document, in which YAML has read them with all their digits.
 * @param fault made of the place of one that JavaScript cannot represent, and of `.inf` and `.nan`; it is thrown
 */
function withNumbers(
  document: unknown,
  fault: (path: readonly string[], digits: string) => Error,
): unknown {
  // An anchor may stand for one object in several places, and within itself.
  const seen = new Set<unknown>();
  const convert = (value: unknown, path: readonly string[]): unknown => {
    if (typeof value === 'bigint' || typeof value === 'number') {
      // A float may be written with digits alone.
      const fine = typeof value === 'bigint' ? isRepresentable(`${value}`) : Number.isFinite(value);
      if (fine) return Number(value);
      throw fault(path, String(value));
    }
    if (typeof value !== 'object' || value === null || seen.has(value)) return value;
    seen.add(value);
    const members = value as Record<string, unknown>;
    for (const [name, member] of Object.entries(members)) {
      setOwn(members, name, convert(member, [...path, name]));
    }
    return value;
  };
  return convert(document, []);
}

/** Whether a value is an object with fields, and not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * An id as a part of a path, whatever was typed.
 * @throws CommandFault for what no part of a path can be: URLs drop it, and mean another one
 */
export function part(id: string | undefined): string {
  if (id === undefined || id === '') throw usageFault('an id is empty');
  if (id === '.' || id === '..') throw usageFault(`"${id}" is no id`);
  return encodeURIComponent(id);
}
