import { expect } from 'chai';
import { wholeInterface } from '../../../app/interface/whole-interface.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../domain/json.ts';
import { taskDefaults } from '../../../domain/tasks/task-definition.ts';

type Objects = Readonly<Record<string, JsonObject>>;

const inside = ['items', 'additionalProperties', 'not'];
const lists = ['anyOf', 'oneOf', 'allOf'];

/** The fields of a schema without a description, as dotted paths. */
function bareFields(schema: JsonValue | undefined, path: string): readonly string[] {
  if (!isJsonObject(schema)) return [];
  const fields = Object.entries((schema['properties'] ?? {}) as Objects);
  return [
    ...fields
      .filter(([, field]) => typeof field['description'] !== 'string')
      .map(([name]) => `${path}.${name}`),
    ...fields.flatMap(([name, field]) => bareFields(field, `${path}.${name}`)),
    ...inside.flatMap((keyword) => bareFields(schema[keyword], path)),
    ...lists.flatMap((keyword) =>
      ((schema[keyword] ?? []) as readonly JsonValue[]).flatMap((part) => bareFields(part, path)),
    ),
  ];
}

describe('the description of the interface', () => {
  let document: JsonObject;
  before(async () => {
    document = await wholeInterface('1.0.0');
  });

  const components = (kind: string): Objects =>
    (document['components'] as unknown as Readonly<Record<string, Objects>>)[kind] ?? {};
  const operations = (): readonly JsonObject[] =>
    Object.values(document['paths'] as unknown as Objects).flatMap(
      (each) => Object.values(each) as JsonObject[],
    );
  const parametersOf = (operation: JsonObject): readonly JsonObject[] =>
    (operation['parameters'] as unknown as readonly JsonObject[]).map((parameter) => {
      const { $ref } = parameter as { readonly $ref?: string };
      return $ref === undefined
        ? parameter
        : (components('parameters')[$ref.split('/').at(-1) ?? ''] ?? {});
    });
  /** Every body of an operation's requests and responses, with its location. */
  const bodiesOf = (operation: JsonObject): readonly (readonly [string, JsonObject])[] => {
    const name = operation['operationId'] as string;
    const { requestBody, responses } = operation as unknown as {
      readonly requestBody?: { readonly content: Objects };
      readonly responses: Readonly<Record<string, { readonly content?: Objects }>>;
    };
    const content = Object.entries(responses).map(
      ([status, { content: found = {} }]) => [`${name} ${status}`, found] as const,
    );
    return [[`${name} body`, requestBody?.content ?? {}] as const, ...content].flatMap(
      ([place, found]) => Object.values(found).map((body) => [place, body] as const),
    );
  };

  it('explains every field of every schema', () => {
    const schemas = Object.entries(components('schemas'));
    const bare = [
      ...schemas.filter(([, { description }]) => description === undefined).map(([name]) => name),
      ...schemas.flatMap(([name, schema]) => bareFields(schema, name)),
      ...operations().flatMap((operation) =>
        bodiesOf(operation).flatMap(([place, { schema }]) => bareFields(schema, place)),
      ),
    ];
    expect(bare).to.deep.equal([]);
  });

  it('explains every parameter and every header', () => {
    const bare = operations().flatMap((operation) =>
      parametersOf(operation)
        .filter(({ description }) => typeof description !== 'string')
        .map(({ name }) => `${operation['operationId'] as string}.${name as string}`),
    );
    expect(bare).to.deep.equal([]);
    for (const header of Object.values(components('headers'))) {
      expect(header['description']).to.be.a('string');
    }
  });

  it('has an example of every parameter and every body of an operation', () => {
    const bare = operations().flatMap((operation) => [
      ...parametersOf(operation)
        .filter(({ example }) => example === undefined)
        .map(({ name }) => `${operation['operationId'] as string}.${name as string}`),
      ...bodiesOf(operation)
        .filter(([, { example }]) => example === undefined)
        .map(([place]) => place),
    ]);
    expect(bare).to.deep.equal([]);
  });

  it('names operations as a client would name its methods', () => {
    const names = operations().map(({ operationId }) => operationId as string);
    for (const name of names) expect(name).to.match(/^[a-z][A-Za-z]{2,39}$/);
    expect(new Set(names).size).to.equal(names.length);
    expect(names).to.include.members(['createTask', 'redeliverWebhook', 'listRuns']);
    expect(names.filter((name) => /^(?:get|post|put|delete).*By[A-Z]/.test(name))).to.deep.equal(
      [],
    );
  });

  it('groups operations under tags that it describes', () => {
    const described = (document['tags'] as unknown as readonly JsonObject[]).map(
      ({ name }) => name,
    );
    const used = new Set(operations().flatMap(({ tags }) => tags as unknown as readonly string[]));
    expect(described).to.have.members([...used]);
  });

  it('declares the defaults of a task, and none for a change of it', () => {
    const fieldsOf = (name: string): Objects =>
      (components('schemas')[name]?.['properties'] ?? {}) as Objects;
    const declared = Object.entries(fieldsOf('CreateTask')).filter(
      ([, field]) => 'default' in field,
    );
    expect(
      Object.fromEntries(declared.map(([name, field]) => [name, field['default']])),
    ).to.deep.equal({ ...taskDefaults });
    const changed = Object.values(fieldsOf('UpdateTask')).filter((field) => 'default' in field);
    expect(changed).to.deep.equal([]);
  });
});
