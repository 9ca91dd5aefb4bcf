import { recordResponse } from './interface-record.ts';
import { checkResponse } from './response-check.ts';

/** A response, with its body as text. */
export interface Visited {
  readonly status: number;
  readonly url: string;
  readonly text: string;
  readonly headers: Headers;
}

/** A person's browser that handles cookies and redirects, but runs no scripts. */
export class CookieBrowser {
  readonly cookies = new Map<string, string>();
  /** `Set-Cookie` of all responses. */
  readonly set: string[] = [];
  readonly #service: string;

  /** @param service the address of the service, whose responses are checked and recorded */
  constructor(service: string) {
    this.#service = service;
  }

  /** The name of the cookie of a session. */
  get session(): string {
    return `svc_session_${new URL(this.#service).port}`;
  }

  /** Sends one request, as a browser that follows a link. */
  async request(
    method: string,
    url: string,
    options: {
      readonly form?: Readonly<Record<string, string>>;
      /** Sent as JSON. */
      readonly body?: object;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<Visited> {
    const { form, body, headers = {} } = options;
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: {
        accept: 'text/html',
        ...(cookie === '' ? {} : { cookie }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    for (const line of response.headers.getSetCookie()) this.#take(line);
    const visited = { status: response.status, url, text: await response.text() };
    this.#check(method, { ...visited, headers: response.headers }, body);
    return { ...visited, headers: response.headers };
  }

  /** Opens an address, and follows redirects to the end, or to one that begins with `until`. */
  async open(url: string, until?: string): Promise<Visited> {
    let visited = await this.request('GET', url);
    for (;;) {
      const to = visited.headers.get('location');
      if (visited.status < 300 || visited.status >= 400 || to === null) return visited;
      const next = new URL(to, visited.url).href;
      if (until !== undefined && next.startsWith(until)) return { ...visited, url: next };
      visited = await this.request('GET', next);
    }
  }

  /** Sends the provider's form, and follows its redirects. */
  async submit(form: Visited, fields: Readonly<Record<string, string>>, until?: string) {
    const sent = await this.request('POST', form.url, { form: fields });
    return this.open(new URL(sent.headers.get('location') ?? '', sent.url).href, until);
  }

  /** Errors in the form of HTML pages have no schema. */
  #check(method: string, { url, status, headers, text }: Visited, body: unknown): void {
    const isPage = headers.get('content-type')?.startsWith('text/html') === true;
    if (!url.startsWith(this.#service) || (status >= 400 && isPage)) return;
    const path = url.slice(this.#service.length);
    const answer = { status, headers: Object.fromEntries(headers), text };
    checkResponse(method, path, answer);
    recordResponse(method, path, body, answer);
  }

  #take(line: string): void {
    this.set.push(line);
    const [pair = ''] = line.split(';');
    const end = pair.indexOf('=');
    const name = pair.slice(0, end);
    const value = pair.slice(end + 1);
    if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
