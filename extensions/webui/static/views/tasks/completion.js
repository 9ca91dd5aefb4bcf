// Completion of a pipeline's JSON: names of fields and tools, and values that a schema lists.

const MAX_OFFERED = 50;
const payloadFields = { pipeline: 'the steps, in order', params: 'values that the steps read' };

/** The service's facts about pipelines: `tools` by name, each with its schema, and the schema of a step. */
export function knowledgeOf({ tools, step }) {
  return { tools: new Map(tools.map((tool) => [tool.name, tool])), step };
}

/**
 * Suggests text for the place of the caret.
 * @param {string} text of the whole payload
 * @param {number} caret
 * @returns `{from, isClosed, isKey, items}`; items are `{text, about}`; null if there is nothing to suggest
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

/** The schema of a step's arguments, if the place is directly within its `with`; otherwise null. */
function argumentSchema(path, { '': outer }, tools) {
  if (path.at(-1) !== 'with' || !isStep(path.slice(0, -1))) return null;
  return tools.get(outer?.uses)?.schema ?? null;
}

/**
 * Finds the place in the JSON at which a text ends, if that is within a string: a key or a value. null elsewhere. The
 * text may be invalid JSON; as much of it as possible is understood.
 * @returns `{path, isKey, prefix, from, before}`; `before`: the members so far of the object around the place; its `''`
 *   holds those of the next outer object
 */
function placeOf(text) {
  const { stack, string } = scan(text);
  if (string === null || stack.length === 0) return null;
  const top = stack.at(-1);
  const isKey = top.isObject && top.isKeyNext;
  const path = pathOf(isKey ? stack.slice(0, -1) : stack);
  const outer = stack.findLast((each) => each.isObject && each !== top);
  const before = { ...top.fields, '': outer?.fields };
  return { path, isKey, prefix: text.slice(string + 1), from: string + 1, before };
}

/** The tools that steps name so far, in a text that need not be valid JSON. @returns `{path, tool}` of each */
export function toolsNamedIn(text) {
  const named = [];
  scan(text, (stack, tool) => {
    if (stack.at(-1).key !== 'uses') return;
    const path = pathOf(stack);
    if (isStep(path.slice(0, -1))) named.push({ path, tool });
  });
  return named;
}

const pathOf = (stack) => stack.map((each) => (each.isObject ? each.key : each.index));

/**
 * Reads JSON up to its end or its first fault.
 * @param {(stack: object[], value: string) => void} onValue called at the end of each string that is a member's value
 * @returns `{stack, string}`: the open objects and arrays, and where an open string starts, or null
 */
function scan(text, onValue = () => {}) {
  const stack = [];
  let string = null;
  let last = null;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    const top = stack.at(-1);
    if (string !== null) {
      if (letter === '\\') at += 1;
      else if (letter === '"') {
        last = text.slice(string + 1, at);
        string = null;
        if (!top?.isObject || top.isKeyNext) continue;
        top.fields[top.key] = last;
        onValue(stack, last);
      }
      continue;
    }
    if (letter === '"') string = at;
    else if (letter === '{') stack.push({ isObject: true, key: null, isKeyNext: true, fields: {} });
    else if (letter === '[') stack.push({ isObject: false, index: 0 });
    else if (letter === '}' || letter === ']') stack.pop();
    else if (letter === ':' && top?.isObject) Object.assign(top, { key: last, isKeyNext: false });
    else if (letter === ',' && top !== undefined) {
      if (top.isObject) Object.assign(top, { key: null, isKeyNext: true });
      else top.index += 1;
    }
  }
  return { stack, string };
}
