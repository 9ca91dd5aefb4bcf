import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { parse } from 'yaml';
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

/** A value as it is written on a command line: JSON where it is JSON, and else the text itself. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * The JSON or YAML of a file, or of the standard input for `-`.
 * @throws CommandFault where it can't be read, or is neither, naming the file and the line; BrokenOff
 */
export async function readDocument(
  name: string,
  { input }: Pick<Surroundings, 'input'>,
): Promise<unknown> {
  let text: string;
  try {
    text = name === '-' ? await input() : readFileSync(name, 'utf8');
  } catch (error) {
    if (error instanceof BrokenOff) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw usageFault(`${name} can't be read: ${why}`);
  }
  try {
    return parse(text) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw usageFault(`${name}: ${why}`);
  }
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
