import { ExtensionError, type ExtensionCaller } from '../../contract.ts';
import type { LedRequest } from './led-request.ts';
import { isClosedPage, isOpen } from './open-paths.ts';
import type { HostSettings, HttpPort } from '../ports.ts';

/** Lets requests come to extensions, by the rules of the whole interface: by a token, and by scopes where asked for. */
export class Admission {
  readonly #http: HttpPort;
  readonly #settings: HostSettings;

  constructor(http: HttpPort, settings: HostSettings) {
    this.#http = http;
    this.#settings = settings;
  }

  /**
   * Finds out who calls, and whether they may; at once where that is at hand.
   * @throws 401, 403: what the interface says
   */
  admit(led: LedRequest): Promise<void> | void {
    const calling = this.#callerOf(led);
    if (calling instanceof Promise) {
      return calling.then((caller) => {
        admitted(led, caller);
      });
    }
    admitted(led, calling);
  }

  /**
   * Whether the caller of a request that goes on may go on; the request then has the caller as it is now. What can't be
   * told just now changes nothing.
   */
  async stillCounts(led: LedRequest): Promise<boolean> {
    try {
      const caller = await this.#callerOf(led);
      if (caller !== null) led.caller = caller;
      return true;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      return code !== 'unauthorized' && code !== 'forbidden';
    }
  }

  #callerOf(led: LedRequest): Promise<ExtensionCaller | null> | ExtensionCaller | null {
    const { extension, rest, request } = led;
    const { requireScopes } = this.#settings;
    if (extension.source === 'builtin') {
      if (isOpen(extension, rest, this.#settings)) return this.#http.callerOf(request);
      // Browsers send what people have typed along by themselves: it counts for nothing that changes anything.
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      if (isReading && isClosedPage(extension, rest, this.#settings)) {
        return this.#http.visitorOf(request);
      }
    }
    if (!requireScopes) return this.#http.authenticate(request, []);
    const calling = this.#http.authenticate(request, [scopeOf(led)]);
    return calling instanceof Promise
      ? calling.then((caller) => this.#withHeader(led, caller))
      : this.#withHeader(led, calling);
  }

  /** @throws 403 where the header does not name the scope as well: it is the caller's own word, as the interface has it */
  #withHeader(led: LedRequest, caller: ExtensionCaller): ExtensionCaller {
    const scope = scopeOf(led);
    const said = (led.request.get('x-scopes') ?? '').split(/[\s,]+/).filter((each) => each !== '');
    if (said.includes(scope) || said.includes('admin')) return caller;
    const details = { required_scopes: [scope], granted_scopes: said };
    const error = new ExtensionError('forbidden', `X-Scopes must name ${scope}`, details);
    throw this.#http.errorOf(error);
  }
}

function admitted(led: LedRequest, caller: ExtensionCaller | null): void {
  led.caller = caller;
  led.isAdmitted = true;
}

/** What a route needs where scopes are asked for. */
function scopeOf({ extension }: LedRequest): string {
  return `ext:${extension.id}:routes`;
}
