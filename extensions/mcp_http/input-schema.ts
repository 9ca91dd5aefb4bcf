/** A schema of a tool's parameters in the form that the Model Context Protocol has for it. */
export interface InputSchema {
  readonly type: 'object';
  [keyword: string]: unknown;
}

/**
 * The protocol knows less than JSON Schema: properties are objects there, and clients refuse a whole list of tools for one
 * that says otherwise. So `true` is written as `{}`, `false` as `{"not": {}}`, and what is no such list at all is left out.
 * @param schema JSON schema of an object
 */
export function inputSchemaOf(schema: object): InputSchema {
  const { properties, required, ...rest } = schema as Readonly<Record<string, unknown>>;
  return {
    ...rest,
    type: 'object',
    ...(isObject(properties) ? { properties: withObjects(properties) } : {}),
    ...(isListOfTexts(required) ? { required } : {}),
  };
}

function withObjects(properties: object): object {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]: [string, unknown]) => [
      name,
      isObject(schema) ? schema : schema === false ? { not: {} } : {},
    ]),
  );
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
