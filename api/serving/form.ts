import type { IncomingMessage } from 'node:http';
import type { TSchema } from '@sinclair/typebox';
import type { Issue } from '../../domain/errors.ts';
import { HttpError, OAuthError, badRequest } from '../errors.ts';
import { decodeUtf8, readBytes } from './body.ts';

const FORM_TYPE = /^application\/x-www-form-urlencoded *(?:; *charset="?utf-?8"? *)?$/i;

/**
 * Reads the form of an OAuth 2.0 request (RFC 6749, sections 2.3.1 and 3.2); `client_id` and `client_secret` may come
 * by HTTP Basic. Parameters without a value count as missing. Parameters that the schema lacks are ignored.
 * @param schema of the parameters; only an array may be given several times
 * @throws HttpError 413 over the limit, 415 for another media type, 400 if it is not UTF-8 or a parameter is given
 *   twice; OAuthError when the client authenticates in both ways
 */
export async function readForm(
  request: IncomingMessage,
  schema: TSchema,
  limit: number,
): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await readBytes(request, limit);
  if (bytes.length > 0) checkType(request);
  const form = new URLSearchParams(decodeUtf8(bytes));
  const fields: Record<string, unknown> = {};
  const twice: Issue[] = [];
  for (const [name, { type }] of Object.entries(propertiesOf(schema))) {
    const values = form.getAll(name).filter((value) => value !== '');
    if (values.length === 0) continue;
    const isTwice = type !== 'array' && values.length > 1;
    if (isTwice) twice.push({ field: name, issue: 'must be given once' });
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

/** @param header `Authorization`; only Basic authenticates a client */
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
    const message = 'Authorization must be Basic with client_id:client_secret';
    throw new OAuthError('invalid_client', message);
  }
  const { client_id: other = client_id } = fields;
  if ('client_secret' in fields || other !== client_id) {
    const issue = 'authenticate the client either by Authorization or in the body';
    throw new OAuthError('invalid_request', issue);
  }
  return { ...fields, client_id, ...(client_secret === '' ? {} : { client_secret }) };
}

/** Decodes a form-encoded string. Other strings stay unchanged. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    return value;
  }
}
