import type { IncomingMessage } from 'node:http';
import type { TSchema } from '@sinclair/typebox';
import type { Issue } from '../../domain/errors.ts';
import { HttpError, OAuthError, badRequest } from '../errors.ts';
import { readBytes, textOf } from './body.ts';

const FORM_TYPE = /^application\/x-www-form-urlencoded *(?:; *charset="?utf-?8"? *)?$/i;

/**
 * Reads the parameters of a request to an endpoint of OAuth 2.0 (RFC 6749, sections 2.3.1 and 3.2): from its body, and
 * `client_id` and `client_secret` also from HTTP Basic, where both are form-encoded. A parameter without a value counts as
 * left out, and one that the schema does not know is ignored.
 *
 * @param schema of the parameters; one whose type is an array may come several times
 * @returns the parameters that the schema knows, those of a list as an array
 * @throws HttpError 413 over the limit, 415 for what is no form, 400 for what is not UTF-8 or comes twice; OAuthError where
 *   the client authenticates in both ways
 */
export async function readForm(
  request: IncomingMessage,
  schema: TSchema,
  limit: number,
): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readBytes(request, limit);
  if (bytes.length > 0) checkType(request);
  const form = new URLSearchParams(textOf(bytes));
  const fields: Record<string, unknown> = {};
  const twice: Issue[] = [];
  for (const [name, { type }] of Object.entries(propertiesOf(schema))) {
    const values = form.getAll(name).filter((value) => value !== '');
    if (values.length === 0) continue;
    if (type !== 'array' && values.length > 1)
      twice.push({ field: name, issue: 'must be given once' });
    fields[name] = type === 'array' ? values : values[0];
  }
  const [first, ...rest] = twice;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return withClient(fields, request.headers.authorization);
}

const propertiesOf = ({ properties = {} }: TSchema) =>
  properties as Readonly<Record<string, { readonly type?: unknown }>>;

function checkType({ headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (FORM_TYPE.test(type.trim()) && encoding.toLowerCase() === 'identity') return;
  const message = 'the body must be application/x-www-form-urlencoded in UTF-8';
  throw new HttpError('unsupported_media_type', message, {
    content_type: headers['content-type'] ?? null,
    content_encoding: encoding,
  });
}

/** @param header `Authorization`; what is not Basic does not authenticate a client */
function withClient(
  fields: Readonly<Record<string, unknown>>,
  header = '',
): Readonly<Record<string, unknown>> {
  if (!/^basic(?: |$)/i.test(header)) return fields;
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header)?.[1] ?? '';
  const [id = '', ...rest] = Buffer.from(encoded, 'base64').toString().split(':');
  const client_id = decoded(id);
  const client_secret = decoded(rest.join(':'));
  if (client_id === '') {
    throw new OAuthError(
      'invalid_client',
      'Authorization must be Basic with client_id:client_secret',
    );
  }
  const { client_id: other = client_id } = fields;
  if ('client_secret' in fields || other !== client_id) {
    const issue = 'authenticate the client either by Authorization or in the body';
    throw new OAuthError('invalid_request', issue);
  }
  return { ...fields, client_id, ...(client_secret === '' ? {} : { client_secret }) };
}

/** Form-decoded; as it is where that is no form encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
