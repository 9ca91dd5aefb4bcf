import { IncomingMessage, ServerResponse, type RequestListener } from 'node:http';
import type { Express } from 'express';

/** The classes that `node:http` instantiates. */
export interface MessageClasses {
  readonly IncomingMessage?: typeof IncomingMessage;
  readonly ServerResponse?: typeof ServerResponse;
}

/**
 * Classes of requests and responses that have the application's prototypes from the start. Express would replace the
 * prototype of each object. V8 would then find none of its properties by shape, which costs a fifth of a request's
 * time.
 * @param listener if it is not an Express application, Node's own classes are used
 */
export function messageClasses(listener: RequestListener | Express): MessageClasses {
  if (!('request' in listener)) return {};
  class ApplicationRequest extends IncomingMessage {}
  class ApplicationResponse<
    R extends IncomingMessage = IncomingMessage,
  > extends ServerResponse<R> {}
  listener.request = extend(ApplicationRequest.prototype, listener.request);
  listener.response = extend(ApplicationResponse.prototype, listener.response);
  return { IncomingMessage: ApplicationRequest, ServerResponse: ApplicationResponse };
}

/** Makes a class's prototype inherit from the application's. */
function extend<T extends object>(prototype: object, applications: T): T {
  Object.setPrototypeOf(prototype, applications);
  return prototype as T;
}
