/** Parameters of a call, checked against the tool's schema. */
export type Parameters = Readonly<Record<string, unknown>>;

/** A request to the service's interface. */
export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A GET request whose query holds the tool's parameters. */
export function reading(path: string, parameters: Parameters = {}): ServiceRequest {
  const query = Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, scalar(value)]),
  );
  return { method: 'GET', path, query };
}

/** A POST request with the headers that the tool's parameters set. */
export function command(
  path: string,
  given: Parameters,
  more: Pick<ServiceRequest, 'body' | 'query'> = {},
): ServiceRequest {
  return { method: 'POST', path, headers: headersOf(given), ...more };
}

/** Request headers made from a tool's parameters. */
export function headersOf({
  idempotency_key,
  if_revision,
  reason,
}: Parameters): Record<string, string> {
  return {
    ...(typeof idempotency_key === 'string' ? { 'idempotency-key': idempotency_key } : {}),
    ...(typeof if_revision === 'number' ? { 'if-match': `"${if_revision}"` } : {}),
    ...(typeof reason === 'string' ? { 'x-reason': headerOf(reason) } : {}),
  };
}

/** Encodes a string for a header: UTF-8, one character per byte, on one line. */
const headerOf = (text: string): string =>
  Buffer.from(text.replaceAll(/\p{Cc}+/gu, ' ').trim()).toString('latin1');

/** `{success, message, details: {…}}` → `{…, message}` */
export function done({ message, details }: Parameters): Parameters {
  return { ...(details as object | undefined), message };
}

/** A value as one segment of a path. */
export function part(value: unknown): string {
  return encodeURIComponent(String(value));
}

/** A value as a query parameter; undefined for any other type. */
export function scalar(value: unknown): string | number | boolean | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value)
    ? (value as string | number | boolean)
    : undefined;
}
