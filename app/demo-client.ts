/** Something did not go as the demo expects; the message says what. */
export class DemoFault extends Error {
  override readonly name = 'DemoFault';
}

/** Speaks HTTP with the demo's service. */
export class DemoClient {
  readonly #address: string;
  readonly #signal: AbortSignal;
  readonly #token: string | null;

  /** @param signal ends every call that is under way */
  constructor(address: string, signal: AbortSignal, token: string | null = null) {
    this.#address = address;
    this.#signal = signal;
    this.#token = token;
  }

  /** The same service with a token. */
  as(token: string): DemoClient {
    return new DemoClient(this.#address, this.#signal, token);
  }

  /** @throws DemoFault when the answer is no success */
  get<T>(path: string): Promise<T> {
    return this.#call<T>('GET', path);
  }

  /** @throws DemoFault when the answer is no success */
  post<T>(path: string, body?: object): Promise<T> {
    return this.#call<T>('POST', path, body);
  }

  /** The status alone, whatever it is. */
  async status(path: string): Promise<number> {
    const answer = await fetch(this.#address + path, { signal: this.#signal });
    await answer.arrayBuffer();
    return answer.status;
  }

  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(this.#address + path, {
      method,
      signal: this.#signal,
      headers: {
        ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text) as T;
    throw new DemoFault(`${method} ${path} was answered with ${answer.status}: ${text}`);
  }
}
