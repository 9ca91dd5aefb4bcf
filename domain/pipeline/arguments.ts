import { Ajv, type ErrorObject } from 'ajv';
import { schemaFaults, type SchemaFault } from './schema-faults.ts';

/** A fault of a tool's arguments, at a path of keys and indexes. */
export type ArgumentFault = SchemaFault;

/** Says what is wrong with a tool's arguments; nothing: they fit. */
export type ArgumentCheck = (value: unknown) => readonly ArgumentFault[];

const common = {
  strict: false,
  validateFormats: false,
  // See the codec of the events.
  code: { optimize: false },
} as const;
/** What makes a schema a schema, compiled once: as long a work as that of many schemas. */
const metaschema = new Ajv(common);

const checks = new WeakMap<object, ArgumentCheck>();

/**
 * Compiles the JSON schema of a tool's arguments, once per schema object.
 * @throws Error when it is no valid JSON schema, or one that is asynchronous (`$async`, of Ajv)
 */
export function argumentCheck(schema: object): ArgumentCheck {
  const known = checks.get(schema);
  if (known) return known;
  const { $schema: _dialect, ...rest } = schema as Record<string, unknown>;
  // Its answer would be a promise: any arguments would be taken, and what it says later ends the process. One within a
  // schema that is not asynchronous itself is refused by Ajv.
  if (rest['$async']) throw new Error('a schema must not be asynchronous ($async)');
  // Not a promise: the metaschema is none of those that are looked up first.
  void metaschema.validateSchema(rest, true);
  // An instance for each, so that equal `$id`s of different tools don't get in each other's way.
  const ajv = new Ajv({ ...common, allErrors: true, validateSchema: false });
  const validate = ajv.compile(rest);
  const check: ArgumentCheck =
    Object.keys(rest).length === 0
      ? () => []
      : (value) => (validate(value) ? [] : schemaFaults(validate.errors, ownWords));
  checks.set(schema, check);
  return check;
}

/** All faults in one line. */
export function faultText(faults: readonly ArgumentFault[]): string {
  return faults.map(({ path, issue }) => `${['with', ...path].join('.')} ${issue}`).join('; ');
}

function ownWords({ keyword }: ErrorObject): string | undefined {
  if (keyword === 'required') return 'is missing';
  return keyword === 'additionalProperties' ? 'is not known' : undefined;
}
