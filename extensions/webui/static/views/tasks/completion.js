// What can be written at a place of a pipeline's JSON: names of fields, of tools, and values that a schema lists.

const MAX_OFFERED = 50;
const payloadFields = { pipeline: 'the steps, in order', params: 'values that the steps read' };

/** What the service knows about pipelines: `tools` by name, each with its schema, and the schema of a step. */
export function knowledgeOf({ tools, step }) {
  return { tools: new Map(tools.map((tool) => [tool.name, tool])), step };
}

/**
 * What could be written at the caret.
 * @param {string} text of the whole payload @param {number} caret
 * @returns `{from, isClosed, isKey, items}`; items are `{text, about}`; null where nothing is offered
 */
export function completionAt(text, caret, { tools, step }) {
  const place = placeOf(text.slice(0, caret));
  if (place === null) return null;
  const { path, isKey, prefix, from, before } = place;
  const offered = isKey ? keysAt(path, before, tools, step) : valuesAt(path, before, tools, step);
  const wanted = prefix.toLowerCase();
  const items = offered
    .filter(({ text: each }) => each.toLowerCase().includes(wanted) && !(isKey && each in before))
    .sort((a, b) => Number(!a.text.startsWith(prefix)) - Number(!b.text.startsWith(prefix)))
    .slice(0, MAX_OFFERED);
  if (items.length === 0 || (items.length === 1 && items[0].text === prefix)) return null;
  return { from, isKey, isClosed: /^[^"\\\n]*"/.test(text.slice(caret)), items };
}

const isStep = (path) =>
  path[0] === 'pipeline' &&
  (path.length === 2 || (path.length === 4 && path[2] === 'parallel')) &&
  Number.isInteger(path.at(-1));

const offer = (properties = {}) =>
  Object.entries(properties).map(([text, { description = '' }]) => ({ text, about: description }));

function keysAt(path, before, tools, step) {
  if (path.length === 0) {
    return Object.entries(payloadFields).map(([text, about]) => ({ text, about }));
  }
  if (isStep(path)) return offer(step.properties);
  const schema = argumentSchema(path, before, tools);
  return schema === null ? [] : offer(schema.properties);
}

function valuesAt(path, before, tools, step) {
  const [key, owner] = [path.at(-1), path.slice(0, -1)];
  if (isStep(owner)) {
    if (key === 'uses') {
      return [...tools.values()].map(({ name, own }) => ({
        text: name,
        about: own ? '' : 'of a worker',
      }));
    }
    return (step.properties[key]?.enum ?? []).map((text) => ({ text, about: '' }));
  }
  const schema = argumentSchema(owner, before, tools);
  return (schema?.properties?.[key]?.enum ?? [])
    .filter((each) => typeof each === 'string')
    .map((text) => ({ text, about: '' }));
}

/** The schema of the arguments of the step around a place directly within its `with`. */
function argumentSchema(path, { '': outer }, tools) {
  if (path.at(-1) !== 'with' || !isStep(path.slice(0, -1))) return null;
  return tools.get(outer?.uses)?.schema ?? null;
}

/**
 * Where the end of a text is in its JSON: within a string that is a key or a value; null elsewhere. The text may be
 * faulty: what was written before counts as far as it can be understood.
 * @returns `{path, isKey, prefix, from, before}`; `before`: what the object around has so far, and at `''` that around it
 */
function placeOf(text) {
  const stack = [];
  let string = null;
  let last = null;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (string !== null) {
      if (letter === '\\') at += 1;
      else if (letter === '"') {
        last = text.slice(string + 1, at);
        string = null;
        take(stack.at(-1), last);
      }
      continue;
    }
    if (letter === '"') string = at;
    else if (letter === '{') stack.push({ isObject: true, key: null, isKeyNext: true, fields: {} });
    else if (letter === '[') stack.push({ isObject: false, index: 0 });
    else if (letter === '}' || letter === ']') stack.pop();
    else if (letter === ':' && stack.at(-1)?.isObject) {
      stack.at(-1).key = last;
      stack.at(-1).isKeyNext = false;
    } else if (letter === ',' && stack.length > 0) {
      const top = stack.at(-1);
      if (top.isObject) Object.assign(top, { key: null, isKeyNext: true });
      else top.index += 1;
    }
  }
  if (string === null || stack.length === 0) return null;
  const top = stack.at(-1);
  const isKey = top.isObject && top.isKeyNext;
  const path = stack
    .slice(0, isKey ? -1 : undefined)
    .map((each) => (each.isObject ? each.key : each.index));
  const outer = stack.findLast((each) => each.isObject && each !== top);
  const before = { ...top.fields, '': outer?.fields };
  return { path, isKey, prefix: text.slice(string + 1), from: string + 1, before };
}

/** Remembers a string that is the value of a field. */
function take(top, value) {
  if (top?.isObject && !top.isKeyNext) top.fields[top.key] = value;
}
