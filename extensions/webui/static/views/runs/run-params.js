// The form for the params of a run, made from the schema of its task.

import { parseTyped } from '../../json.js';

/** The prefix of these fields' names. It keeps them apart from other fields of a dialog. */
const PREFIX = 'params.';

/**
 * A field for each property of the task's `params_schema`, or one field for all params if it names no properties.
 * @returns {object[]} as a dialog takes them; empty for a task without a schema
 */
export function paramFields({ params_schema: schema, payload }) {
  if (schema === null) return [];
  const defaults = payload.params ?? {};
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) {
    return [{ name: PREFIX, label: 'Params', type: 'textarea', rows: 4, value: '', hint: 'JSON' }];
  }
  // A list leaves out large payloads, and the defaults with them.
  const isWhole = payload.truncated !== true;
  const required = new Set(isWhole && Array.isArray(schema.required) ? schema.required : []);
  return properties.map(([key, property]) => {
    const { title, description } = property;
    return {
      name: PREFIX + key,
      label: typeof title === 'string' ? title : key,
      value: typed(defaults[key], property),
      hint: typeof description === 'string' ? description : undefined,
      required: required.has(key) && !(key in defaults) && `${key} is required`,
      ...controlOf(property, key in defaults),
    };
  });
}

/** The kind of control for a property. */
function controlOf(property, hasDefault) {
  const none = hasDefault ? {} : { '': '–' };
  if (Array.isArray(property.enum)) {
    const values = property.enum.map((value) => [JSON.stringify(value), String(value)]);
    return { options: { ...none, ...Object.fromEntries(values) } };
  }
  switch (property.type) {
    case 'boolean':
      return { options: { ...none, true: 'yes', false: 'no' } };
    case 'string':
      return { maxlength: property.maxLength };
    case 'integer':
    case 'number': {
      const step = property.type === 'integer' ? 1 : 'any';
      return { type: 'number', min: property.minimum, max: property.maximum, step };
    }
    default:
      return { type: 'textarea', rows: 3 };
  }
}

const isText = (property) => property.type === 'string' && !Array.isArray(property.enum);

/** A value as it is shown in its field. */
function typed(value, property) {
  if (value === undefined) return '';
  return isText(property) && typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * The params that differ from the task's defaults. Numbers and JSON that cannot be read are sent as strings, which the
 * service rejects with the name of the field.
 * @param {Record<string, string>} values of the dialog
 */
export function paramsIn({ params_schema: schema, payload }, values) {
  const defaults = payload.params ?? {};
  const whole = values[PREFIX];
  if (whole !== undefined) return whole === '' ? {} : valueOf(whole);
  const given = {};
  for (const [key, property] of Object.entries(schema.properties)) {
    const text = values[PREFIX + key];
    const before = typed(defaults[key], property).trim();
    if (text === before) continue;
    if (isText(property)) given[key] = text;
    else if (text !== '') given[key] = valueOf(text);
  }
  return given;
}

function valueOf(text) {
  try {
    return parseTyped(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
