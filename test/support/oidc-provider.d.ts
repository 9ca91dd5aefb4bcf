/** Types for the parts of the package that tests use, as it has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  export default class Provider {
    constructor(issuer: string, configuration: object);
    /** Whether to trust `X-Forwarded-…` headers. */
    proxy: boolean;
    callback(): RequestListener;
    interactionDetails(
      request: IncomingMessage,
      response: ServerResponse,
    ): Promise<{ readonly prompt: { readonly name: string }; readonly params: object }>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options?: object,
    ): Promise<void>;
    on(event: string, listener: (...given: unknown[]) => void): this;
    readonly Grant: new (given: object) => {
      addOIDCScope(scope: string): void;
      save(): Promise<string>;
    };
  }
}
