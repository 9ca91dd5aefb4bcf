import { InvalidArgumentError, Option } from 'commander';

/** Declares one option of a command; `T` is the type of its value. */
export interface DeclaredOption<T> {
  /** @param flags such as `--data-dir`, made from the option's name */
  readonly build: (flags: string) => Option;
  /** Never set; it carries the type. */
  readonly type?: (value: T) => void;
}

/** The options of a command by the names of their values: `dataDir` is `--data-dir`. */
export type DeclaredOptions = Readonly<Record<string, DeclaredOption<never>>>;

/** The values of declared options. */
export type OptionValues<S extends DeclaredOptions> = {
  readonly [K in keyof S]: S[K] extends DeclaredOption<infer T> ? T : never;
};

/** Builds the options for commander. */
export function buildOptions(declared: DeclaredOptions): Option[] {
  return Object.entries(declared).map(([name, { build }]) =>
    build(`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`),
  );
}

type Reader<T> = (text: string, before: T) => T;

function valueOption<T>(
  argument: string,
  description: string,
  read?: Reader<T>,
): DeclaredOption<T | undefined> {
  return {
    build: (flags) => {
      const option = new Option(`${flags} <${argument}>`, description);
      return read === undefined ? option : option.argParser(read);
    },
  };
}

/** An option without a value. */
export function flag(description: string): DeclaredOption<boolean | undefined> {
  return { build: (flags) => new Option(flags, description) };
}

/** An option whose value is any string. */
export const text = (argument: string, description: string): DeclaredOption<string | undefined> =>
  valueOption(argument, description);

/** An option whose value is one of a closed list. */
export function choice<T extends string>(
  argument: string,
  description: string,
  choices: readonly T[],
): DeclaredOption<T | undefined> {
  return {
    build: (flags) => new Option(`${flags} <${argument}>`, description).choices(choices),
  };
}

/** An option whose value is a whole number from `min` to `max`. */
export function wholeNumber(
  argument: string,
  description: string,
  min: number,
  max: number,
): DeclaredOption<number | undefined> {
  return valueOption(argument, description, (given) => {
    const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  });
}

/** An option whose value is a number above 0. */
export function positiveNumber(
  argument: string,
  description: string,
): DeclaredOption<number | undefined> {
  return valueOption(argument, description, (given) => {
    const value = Number(given);
    if (Number.isFinite(value) && value > 0) return value;
    throw new InvalidArgumentError('It must be a number above 0.');
  });
}

/** An option that can be repeated. */
export function repeatable(
  argument: string,
  description: string,
): DeclaredOption<readonly string[] | undefined> {
  return valueOption<readonly string[] | undefined>(
    argument,
    `${description}; repeatable`,
    (given, before) => [...(before ?? []), given],
  );
}

/** Gives an option a value to use when it is left out. */
export function withDefault<T>(
  declared: DeclaredOption<T>,
  value: NonNullable<T>,
): DeclaredOption<NonNullable<T>> {
  return { build: (flags) => declared.build(flags).default(value) };
}

/** Makes an option mandatory. */
export function required<T>(declared: DeclaredOption<T>): DeclaredOption<NonNullable<T>> {
  return { build: (flags) => declared.build(flags).makeOptionMandatory() };
}

/** Gives an option a short form as well. */
export function short<T>(letter: string, declared: DeclaredOption<T>): DeclaredOption<T> {
  return { build: (flags) => declared.build(`-${letter}, ${flags}`) };
}

/** Selects the embedded store of a command that opens the stores itself. */
export const dataDir = text('folder', 'the data directory (default: SVC_DATA_DIR, or ./data)');

/** Shows a record as it was. */
export const asOf = text('time', 'as it was at an instant or log position');

/** Reads from views that `svc replay --into` built. */
export const view = text('name', 'read the views that `svc replay --into <name>` built');
