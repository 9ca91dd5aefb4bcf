import { Ajv, type ErrorObject } from 'ajv';
import { schemaErrors, type SchemaError } from './schema-errors.ts';

/** An invalid argument of a tool, at a path of keys and indexes. */
export type ArgumentError = SchemaError;

/** Validates a tool's arguments; returns no errors if they are valid. */
export type ArgumentCheck = (value: unknown) => readonly ArgumentError[];

const common = {
  strict: false,
  validateFormats: false,
  // See the codec of the events for these options.
  code: { optimize: false },
} as const;
/** Shared, because compiling the metaschema takes as long as many schemas. */
const metaschema = new Ajv(common);

const checks = new WeakMap<object, ArgumentCheck>();

/**
 * Compiles the JSON schema of a tool's arguments, once per schema object.
 * @throws Error if the schema is invalid, or asynchronous (Ajv's `$async`)
 */
export function argumentCheck(schema: object): ArgumentCheck {
  const known = checks.get(schema);
  if (known) return known;
  const { $schema: _dialect, ...rest } = schema as Record<string, unknown>;
  // Validation would return a promise. A promise counts as valid, and its rejection ends the
  // process. Ajv itself rejects `$async` within a synchronous schema.
  if (rest['$async']) throw new Error('a schema must not be asynchronous ($async)');
  // Synchronous, because the metaschema is not `$async`.
  void metaschema.validateSchema(rest, true);
  return compile(schema, rest);
}

/**
 * Like {@link argumentCheck}, for the service's own schemas: they are only validated in tests, because validation would
 * delay the start.
 */
export function ownArgumentCheck(schema: object): ArgumentCheck {
  return checks.get(schema) ?? compile(schema, schema);
}

/** @param rest the schema without its dialect */
function compile(schema: object, rest: object): ArgumentCheck {
  // One instance per schema, so equal `$id`s of different tools do not collide.
  const ajv = new Ajv({ ...common, allErrors: true, validateSchema: false });
  const validate = ajv.compile(rest);
  const check: ArgumentCheck =
    Object.keys(rest).length === 0
      ? () => []
      : (value) => (validate(value) ? [] : schemaErrors(validate.errors, messageOf));
  checks.set(schema, check);
  return check;
}

/** All errors in one line, for messages. */
export function formatErrors(errors: readonly ArgumentError[]): string {
  return errors.map(({ path, issue }) => `${['with', ...path].join('.')} ${issue}`).join('; ');
}

function messageOf({ keyword }: ErrorObject): string | undefined {
  if (keyword === 'required') return 'is missing';
  return keyword === 'additionalProperties' ? 'is not known' : undefined;
}
