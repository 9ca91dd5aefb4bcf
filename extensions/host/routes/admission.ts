import { ExtensionError, type ExtensionCaller } from '../../contract.ts';
import type { RequestContext } from './request-context.ts';
import { isProtectedPage, isPublic } from './public-paths.ts';
import type { HostSettings, HttpPort } from '../ports.ts';

/** Authenticates requests to extensions by the rules of the HTTP interface. */
export class Admission {
  readonly #http: HttpPort;
  readonly #settings: HostSettings;

  constructor(http: HttpPort, settings: HostSettings) {
    this.#http = http;
    this.#settings = settings;
  }

  /**
   * Identifies the caller and checks the scopes; synchronously where possible.
   * @throws errors of the interface for 401 and 403
   */
  admit(context: RequestContext): Promise<void> | void {
    const calling = this.#callerOf(context);
    if (calling instanceof Promise) return calling.then((caller) => setCaller(context, caller));
    setCaller(context, calling);
  }

  /**
   * Whether the caller may still receive the response. Updates the caller of the request. A failed check changes
   * nothing.
   */
  async isStillAllowed(context: RequestContext): Promise<boolean> {
    try {
      const caller = await this.#callerOf(context);
      if (caller !== null) context.caller = caller;
      return true;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      return code !== 'unauthorized' && code !== 'forbidden';
    }
  }

  #callerOf(context: RequestContext): Promise<ExtensionCaller | null> | ExtensionCaller | null {
    const { extension, subpath, request } = context;
    const { requireScopes } = this.#settings;
    if (extension.source === 'builtin') {
      if (isPublic(extension, subpath, this.#settings)) return this.#http.callerOf(request);
      // Browsers resend typed credentials on their own, so these only permit reading.
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      if (isReading && isProtectedPage(extension, subpath, this.#settings)) {
        return this.#http.visitorOf(request);
      }
    }
    if (!requireScopes) return this.#http.authenticate(request, []);
    const authenticated = this.#http.authenticate(request, [scopeOf(context)]);
    return authenticated instanceof Promise
      ? authenticated.then((caller) => this.#checkScopeHeader(context, caller))
      : this.#checkScopeHeader(context, authenticated);
  }

  /** @throws an error for 403 if `X-Scopes` does not name the scope: the interface requires both token and header */
  #checkScopeHeader(context: RequestContext, caller: ExtensionCaller): ExtensionCaller {
    const scope = scopeOf(context);
    const declared = (context.request.get('x-scopes') ?? '')
      .split(/[\s,]+/)
      .filter((each) => each !== '');
    if (declared.includes(scope) || declared.includes('admin')) return caller;
    const details = { required_scopes: [scope], granted_scopes: declared };
    const error = new ExtensionError('forbidden', `X-Scopes must name ${scope}`, details);
    throw this.#http.errorOf(error);
  }
}

function setCaller(context: RequestContext, caller: ExtensionCaller | null): void {
  context.caller = caller;
  context.isAdmitted = true;
}

/** The scope that a route needs if `SVC_REQUIRE_SCOPES` is set. */
function scopeOf({ extension }: RequestContext): string {
  return `ext:${extension.id}:routes`;
}
