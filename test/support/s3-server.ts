import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A response that replaces the normal one. `hang`: none. `lost`: none, although the request was carried out. `cut`: the
 * first half of the object.
 */
export type S3Fault =
  | 'hang'
  | 'lost'
  | 'cut'
  | { readonly status: number; readonly code: string }
  | { readonly status: number };

interface StoredObject {
  content: Buffer;
  modified: number;
}

/** Objects of one page of a list, so that lists have several. */
const PAGE = 3;

/**
 * A stand-in for an S3 server at the level of HTTP. It checks signatures (version 4) and the SHA-256 of the content,
 * and responds according to the S3 API reference.
 */
export class S3Server {
  readonly bucket = 'results';
  readonly region = 'eu-central-1';
  readonly credentials = { keyId: 'AKIATEST', secret: 'very/secret+key' };
  /** By key. */
  readonly objects = new Map<string, StoredObject>();
  /** The requests so far: `PUT <key>`. */
  readonly requests: string[] = [];
  /** Called before each response. */
  fault: (request: string) => S3Fault | null = () => null;
  url = '';
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<S3Server> {
    const started = new S3Server();
    await new Promise<void>((ready) => started.#server.listen(0, '127.0.0.1', ready));
    const { port } = started.#server.address() as AddressInfo;
    started.url = `http://127.0.0.1:${String(port)}`;
    return started;
  }

  async close(): Promise<void> {
    await new Promise((closed) => {
      this.#server.close(closed);
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? '/', this.url);
    const [, bucket = '', ...path] = url.pathname.split('/');
    const key = decodeURIComponent(path.join('/'));
    const { method = '' } = request;
    const what = `${method} ${key}`;
    this.requests.push(what);
    const fault = this.fault(what);
    if (fault === 'hang') return;
    if (fault !== null && fault !== 'cut' && fault !== 'lost') {
      sendError(response, fault.status, 'code' in fault ? fault.code : '');
      return;
    }
    const refusal = this.#refusalOf(request, url, body);
    if (refusal !== null) sendError(response, 403, refusal);
    else if (bucket !== this.bucket) sendError(response, 404, 'NoSuchBucket');
    else if (method === 'PUT' && fault === 'lost') this.#keep(key, body);
    else if (method === 'PUT') this.#put(request, response, key, body);
    else if (method === 'GET' && key === '') this.#list(url.searchParams, response);
    else if (method === 'GET') this.#get(response, key, fault === 'cut');
    else if (method === 'DELETE') {
      this.objects.delete(key);
      response.writeHead(204).end();
    } else sendError(response, 405, 'MethodNotAllowed');
  }

  #put(request: IncomingMessage, response: ServerResponse, key: string, body: Buffer): void {
    const { 'x-amz-copy-source': source } = request.headers;
    const modified = Date.now();
    if (typeof source === 'string') {
      const from = this.objects.get(
        decodeURIComponent(source)
          .replace(/^\//, '')
          .slice(this.bucket.length + 1),
      );
      if (from === undefined) {
        sendError(response, 404, 'NoSuchKey');
        return;
      }
      this.objects.set(key, { content: from.content, modified });
      sendXml(response, 200, '<CopyObjectResult><ETag>"x"</ETag></CopyObjectResult>');
      return;
    }
    this.#keep(key, body);
    response.writeHead(200, { ETag: `"${createHash('md5').update(body).digest('hex')}"` }).end();
  }

  #keep(key: string, content: Buffer): void {
    this.objects.set(key, { content, modified: Date.now() });
  }

  #get(response: ServerResponse, key: string, isCut: boolean): void {
    const object = this.objects.get(key);
    if (object === undefined) {
      sendError(response, 404, 'NoSuchKey');
      return;
    }
    const { content } = object;
    response.writeHead(200, {
      'Content-Length': content.byteLength,
      'Content-Type': 'application/json',
    });
    if (!isCut) response.end(content);
    else response.write(content.subarray(0, content.byteLength / 2), () => response.destroy());
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token') ?? '';
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after);
    const page = keys.sort().slice(0, Math.min(PAGE, Number(query.get('max-keys') ?? PAGE)));
    const isTruncated = page.length < keys.length;
    const contents = page.map((key) => {
      const { content, modified } = this.objects.get(key) ?? { content: [], modified: 0 };
      const at = new Date(modified).toISOString();
      return `<Contents><Key>${key}</Key><LastModified>${at}</LastModified><Size>${content.length}</Size></Contents>`;
    });
    const next = isTruncated
      ? `<NextContinuationToken>${page.at(-1) ?? ''}</NextContinuationToken>`
      : '';
    const flag = `<IsTruncated>${String(isTruncated)}</IsTruncated>`;
    sendXml(
      response,
      200,
      `<ListBucketResult>${flag}${next}${contents.join('')}</ListBucketResult>`,
    );
  }

  /** The error code with which a request is rejected; null for a valid one. */
  #refusalOf(request: IncomingMessage, url: URL, body: Buffer): string | null {
    const { headers } = request;
    const found =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d+)\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
        headers.authorization ?? '',
      );
    if (found === null) return 'AccessDenied';
    const [, keyId = '', day = '', region = '', signed = '', signature = ''] = found;
    if (keyId !== this.credentials.keyId) return 'InvalidAccessKeyId';
    if (region !== this.region) return 'AuthorizationHeaderMalformed';
    const sent = String(headers['x-amz-content-sha256'] ?? '');
    if (sent !== createHash('sha256').update(body).digest('hex'))
      return 'XAmzContentSHA256Mismatch';
    const query = [...url.searchParams]
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort()
      .join('&');
    const lines = signed.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
    const canonical = [request.method, url.pathname, query, lines.join(''), signed, sent].join(
      '\n',
    );
    const scope = `${day}/${region}/s3/aws4_request`;
    const digest = createHash('sha256').update(canonical).digest('hex');
    const text = ['AWS4-HMAC-SHA256', String(headers['x-amz-date']), scope, digest].join('\n');
    const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
      (secret, part) => createHmac('sha256', secret).update(part).digest(),
      `AWS4${this.credentials.secret}`,
    );
    const expected = createHmac('sha256', key).update(text).digest('hex');
    return signature === expected ? null : 'SignatureDoesNotMatch';
  }
}

const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );

function sendXml(response: ServerResponse, status: number, xml: string): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?>${xml}`;
  response.writeHead(status, { 'Content-Type': 'application/xml' }).end(body);
}

/** A response without a code, like that of a proxy in front of the server. */
function sendError(response: ServerResponse, status: number, code: string): void {
  if (code === '') response.writeHead(status, { 'Content-Type': 'text/html' }).end('<h1>no</h1>');
  else sendXml(response, status, `<Error><Code>${code}</Code><Message>no</Message></Error>`);
}
