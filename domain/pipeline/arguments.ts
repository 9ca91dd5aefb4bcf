import { Ajv, type ErrorObject } from 'ajv';

/** A fault of a tool's arguments, at a path of keys and indexes. */
export interface ArgumentFault {
  readonly path: readonly string[];
  readonly issue: string;
  readonly keyword: string;
}

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
 * @throws Error when it is no valid JSON schema
 */
export function argumentCheck(schema: object): ArgumentCheck {
  const known = checks.get(schema);
  if (known) return known;
  const { $schema: _dialect, ...rest } = schema as Record<string, unknown>;
  // Not a promise: the metaschema is none of those that are looked up first.
  void metaschema.validateSchema(rest, true);
  // An instance for each, so that equal `$id`s of different tools don't get in each other's way.
  const ajv = new Ajv({ ...common, allErrors: true, validateSchema: false });
  const validate = ajv.compile(rest);
  const check: ArgumentCheck =
    Object.keys(rest).length === 0
      ? () => []
      : (value) => (validate(value) ? [] : (validate.errors ?? []).map(faultOf));
  checks.set(schema, check);
  return check;
}

/** All faults in one line. */
export function faultText(faults: readonly ArgumentFault[]): string {
  return faults.map(({ path, issue }) => `${['with', ...path].join('.')} ${issue}`).join('; ');
}

function faultOf(error: ErrorObject): ArgumentFault {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const { missingProperty, additionalProperty, allowedValues } = error.params as Record<
    string,
    unknown
  >;
  const { keyword } = error;
  if (typeof missingProperty === 'string') {
    return { path: [...path, missingProperty], issue: 'is missing', keyword };
  }
  if (typeof additionalProperty === 'string') {
    return { path: [...path, additionalProperty], issue: 'is not known', keyword };
  }
  const issue = Array.isArray(allowedValues)
    ? `must be one of ${allowedValues.map(String).join(', ')}`
    : (error.message ?? 'is not valid');
  return { path, issue, keyword };
}
