import type { JsonObject } from '../../domain/json.ts';
import {
  fieldLine,
  fieldLines,
  listAt,
  nameOf,
  objectAt,
  textAt,
  typeOf,
} from './reference-schemas.ts';

interface Operation {
  /** `POST /tasks`. */
  readonly name: string;
  readonly tag: string;
  readonly described: JsonObject;
}

const SCHEMAS = 'schemas.md';

/** Headers that every response may have: the page of conventions says what they mean. */
const commonHeaders = /^X-(Request-Id|RateLimit-.*|Event-Position|Read-Position)$/;

const generated = `This page is generated from the schemas: \`npm run docs:reference\`.`;

const linkTo = (name: string): string => `[${name}](${SCHEMAS}#${name.toLowerCase()})`;
const linkWithin = (name: string): string => `[${name}](#${name.toLowerCase()})`;

const example = (language: string, value: unknown): readonly string[] => [
  `\`\`\`${language}`,
  typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2),
  '```',
  '',
];

/**
 * The reference of the HTTP interface, as pages of Markdown.
 * @param description the OpenAPI document, as `wholeInterface` makes it
 * @returns the text of each page by its file name: an index, a page for each group, one for the schemas
 */
export function httpReference(description: JsonObject): ReadonlyMap<string, string> {
  const operations = operationsOf(description);
  const groups = listAt(description, 'tags').map((tag) => ({
    name: textAt(tag, 'name'),
    about: textAt(tag, 'description'),
    operations: operations.filter((operation) => operation.tag === tag['name']),
  }));
  const pages = groups.map(({ name, about, operations }) => {
    const lines = operations.flatMap((each) => operationLines(each, description));
    return [
      `${name}.md`,
      page([`# ${titled(name)}`, '', about, '', generated, '', ...lines]),
    ] as const;
  });
  const index = groups.flatMap(({ name, about, operations }) => [
    `## [${titled(name)}](${name}.md)`,
    '',
    about,
    '',
    ...operations.map(
      (each) =>
        `- [\`${each.name}\`](${name}.md#${anchorOf(each.name)}): ${textAt(each.described, 'summary')}`,
    ),
    '',
  ]);
  const intro = [
    '# All endpoints',
    '',
    'These pages show each operation with its parameters, body, responses and an example. [Conventions](../http.md) has the rules that apply to all of them, and [errors](../errors.md) has every error.',
    '',
    generated,
    '',
  ];
  return new Map([
    ['README.md', page([...intro, ...index])],
    ...pages,
    [SCHEMAS, page(schemaLines(objectAt(objectAt(description, 'components'), 'schemas')))],
  ]);
}

const page = (lines: readonly string[]): string => `${lines.join('\n').trimEnd()}\n`;

const titled = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

const anchorOf = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function operationsOf(description: JsonObject): readonly Operation[] {
  const paths = objectAt(description, 'paths');
  return Object.keys(paths).flatMap((path) => {
    const methods = objectAt(paths, path);
    return Object.keys(methods).map((method) => {
      const described = objectAt(methods, method);
      const [tag = ''] = (described['tags'] ?? []) as readonly string[];
      return { name: `${method.toUpperCase()} ${path}`, tag, described };
    });
  });
}

function operationLines({ name, described }: Operation, whole: JsonObject): readonly string[] {
  const about = textAt(described, 'description').split('\n\n');
  return [
    `## \`${name}\``,
    '',
    `${textAt(described, 'summary')}. ${about.join(' ')} Operation \`${textAt(described, 'operationId')}\`.`,
    '',
    ...parameterLines(described, whole),
    ...bodyLines(described),
    ...responseLines(described),
    ...exampleLines(described),
  ];
}

function parameterLines(described: JsonObject, whole: JsonObject): readonly string[] {
  const known = objectAt(objectAt(whole, 'components'), 'parameters');
  const all = listAt(described, 'parameters').map((each) => {
    const reference = textAt(each, '$ref');
    return reference === '' ? each : objectAt(known, nameOf(reference));
  });
  const lines = all
    .filter((each) => each['in'] !== 'header')
    .map((each) => {
      const schema = objectAt(each, 'schema');
      const isPath = each['in'] === 'path';
      const description = `${isPath ? 'in the path; ' : ''}${textAt(each, 'description')}`;
      const options = { required: each['required'] === true && !isPath, description };
      return fieldLine(textAt(each, 'name'), schema, linkTo, options);
    });
  const headers = all
    .filter((each) => each['in'] === 'header')
    .map((each) => `\`${textAt(each, 'name')}\``);
  return [
    ...(lines.length === 0 ? [] : ['Parameters:', '', ...lines, '']),
    ...(headers.length === 0 ? [] : [`Request headers: ${headers.join(', ')}`, '']),
  ];
}

/** The content of a body or a response: its media type and the schema under it. */
function contentOf(holder: JsonObject): readonly (readonly [type: string, media: JsonObject])[] {
  const content = objectAt(holder, 'content');
  return Object.keys(content).map((type) => [type, objectAt(content, type)] as const);
}

function bodyLines(described: JsonObject): readonly string[] {
  const body = objectAt(described, 'requestBody');
  const [[, media] = []] = contentOf(body);
  if (media === undefined) return [];
  const schema = objectAt(media, 'schema');
  const must = body['required'] === true ? 'required' : 'optional';
  if (textAt(schema, '$ref') !== '') return [`Body (${must}): ${typeOf(schema, linkTo)}`, ''];
  const lines = fieldLines(schema, linkTo);
  return [
    `Body (${must}):`,
    '',
    ...(lines.length > 0 ? lines : [`- ${typeOf(schema, linkTo)}`]),
    '',
  ];
}

function responseLines(described: JsonObject): readonly string[] {
  const responses = objectAt(described, 'responses');
  const statuses = Object.keys(responses);
  const isRefused = (status: string): boolean => textAt(objectAt(responses, status), '$ref') !== '';
  const refused = statuses
    .filter(isRefused)
    .map((status) => `${status} \`${nameOf(textAt(objectAt(responses, status), '$ref'))}\``);
  const successes = statuses
    .filter((status) => !isRefused(status))
    .flatMap((status) => successLines(status, objectAt(responses, status)));
  return [
    'Responses:',
    '',
    ...successes,
    ...(refused.length === 0 ? [] : [`- Errors: ${refused.join(', ')}`]),
    '',
  ];
}

function successLines(status: string, response: JsonObject): readonly string[] {
  const headers = Object.keys(objectAt(response, 'headers'))
    .filter((name) => !commonHeaders.test(name))
    .map((name) => `\`${name}\``);
  const contents = contentOf(response);
  const types = contents.map(([type, media]) => {
    const schema = objectAt(media, 'schema');
    return type === 'application/json' ? typeOf(schema, linkTo) : `\`${type}\``;
  });
  const withHeaders = headers.length === 0 ? '' : `; headers ${headers.join(', ')}`;
  const fields = contents.flatMap(([, media]) => {
    const schema = objectAt(media, 'schema');
    return textAt(schema, '$ref') === '' ? fieldLines(schema, linkTo, true, '  ') : [];
  });
  return [`- \`${status}\`: ${types.join(' or ') || 'no body'}${withHeaders}`, ...fields];
}

function exampleLines(described: JsonObject): readonly string[] {
  const responses = objectAt(described, 'responses');
  const success = Object.keys(responses).find((status) => status.startsWith('2')) ?? '';
  const [[, body] = []] = contentOf(objectAt(described, 'requestBody'));
  const [first] = contentOf(objectAt(responses, success));
  const [type, answer] = first ?? ['', undefined];
  const isJson = type === 'application/json';
  return [
    ...(body?.['example'] === undefined
      ? []
      : ['Example request:', '', ...example('json', body['example'])]),
    ...(answer?.['example'] === undefined || type === 'text/html'
      ? []
      : ['Example response:', '', ...example(isJson ? 'json' : 'text', answer['example'])]),
  ];
}

function schemaLines(schemas: JsonObject): readonly string[] {
  const lines = Object.keys(schemas).flatMap((name) => {
    const schema = objectAt(schemas, name);
    const fields = fieldLines(schema, linkWithin);
    return [
      `## ${name}`,
      '',
      ...(textAt(schema, 'description') === '' ? [] : [textAt(schema, 'description'), '']),
      ...(fields.length > 0 ? fields : [`- ${typeOf(schema, linkWithin)}`]),
      '',
    ];
  });
  const intro = 'Objects in requests and responses. In a response, later versions may add fields.';
  return ['# Schemas', '', intro, '', generated, '', ...lines];
}
