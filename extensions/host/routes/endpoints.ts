import { Type } from '@sinclair/typebox';
import { ownArgumentCheck } from '../../../domain/pipeline/arguments.ts';
import { extensionErrorCodes, type EndpointDescription } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { HostDependencies } from '../ports.ts';

const anything = Type.Object({});
const text = Type.String({ minLength: 1, maxLength: 200 });
const oneOf = (values: readonly string[]) =>
  Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...values] }));

const checkEndpointList = ownArgumentCheck(
  Type.Object(
    {
      endpoints: Type.Array(
        Type.Object(
          {
            method: Type.Unsafe<string>({ enum: ['get', 'post', 'put', 'delete'] }),
            path: Type.String({ pattern: '^(/|(/:?[A-Za-z0-9_.~-]+)+)$', maxLength: 200 }),
            operationId: Type.Optional(Type.String({ pattern: '^[a-z][A-Za-z0-9]{1,34}$' })),
            summary: text,
            description: Type.Optional(Type.String({ maxLength: 2000 })),
            scopes: Type.Union([Type.Array(text), Type.Null()]),
            query: Type.Optional(anything),
            body: Type.Optional(anything),
            answers: Type.Record(Type.String({ pattern: '^[1-5][0-9]{2}$' }), anything, {
              additionalProperties: false,
              minProperties: 1,
            }),
            examples: Type.Optional(
              Type.Object(
                {
                  body: Type.Optional(Type.Unknown()),
                  answers: Type.Optional(anything),
                  parameters: Type.Optional(anything),
                },
                { additionalProperties: false },
              ),
            ),
            answerHeaders: Type.Optional(oneOf(['ETag', 'Location'])),
            idempotent: Type.Optional(Type.Boolean()),
            refusals: Type.Optional(oneOf(extensionErrorCodes)),
          },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false },
  ),
);

/**
 * Validates the endpoint descriptions of a module. Returns a copy, so later changes by the module have no effect.
 * @throws Error naming what is invalid
 */
export function readEndpoints(
  exported: unknown,
  { id, isLimited, source }: Pick<Extension, 'id' | 'isLimited' | 'source'>,
  { checkEndpoints }: Pick<HostDependencies, 'checkEndpoints'>,
): readonly EndpointDescription[] {
  if (exported === undefined) return [];
  let endpoints: unknown;
  try {
    endpoints = JSON.parse(JSON.stringify(exported));
  } catch {
    throw new Error('endpoints must be JSON');
  }
  const [invalid] = checkEndpointList({ endpoints });
  if (invalid !== undefined) {
    throw new Error(`invalid endpoints: ${invalid.path.join('.')} ${invalid.issue}`);
  }
  const read = endpoints as readonly EndpointDescription[];
  // Built-in ones are tested, and checking them would delay the start.
  if (source === 'builtin') return read;
  try {
    checkEndpoints({ id, isLimited, endpoints: read });
  } catch (error) {
    const why = error instanceof Error ? error.message : 'they cannot be described';
    throw new Error(`invalid endpoints: ${why}`, { cause: error });
  }
  return read;
}
