import type { Request, Router } from 'express';
import type { Log, LogFields } from '../../observability/telemetry.ts';
import {
  ExtensionError,
  badInput,
  type BackgroundAccess,
  type Capability,
  type CoreClient,
  type EventAccess,
  type ExtensionCaller,
  type ExtensionContext,
  type ExtensionLog,
  type SocketHandler,
  type StreamAccess,
  type ToolAccess,
} from '../contract.ts';
import type { Extension } from './extension.ts';
import { LedRequest } from './routes/led-request.ts';
import type { HostDependencies, HttpPort } from './ports.ts';

/** What an extension's context is put together from. */
export interface ContextParts {
  readonly routes: Router;
  readonly tools: ToolAccess;
  readonly events: EventAccess;
  readonly streams: StreamAccess;
  readonly background: BackgroundAccess;
  readonly callerOf: (request: object) => ExtensionCaller | null;
  readonly signalOf: (request: object) => AbortSignal;
  readonly once: ExtensionContext['once'];
  readonly innerFor: HttpPort['innerFor'];
  /** Of all extensions that were found. */
  readonly ids: readonly string[];
}

/** A context that holds what was granted, and refuses the rest. */
export function createContext(
  extension: Extension,
  dependencies: Pick<HostDependencies, 'telemetry' | 'settings' | 'service' | 'core' | 'agents'>,
  parts: ContextParts,
): ExtensionContext {
  const need = (capability: Capability): void => needed(extension, capability);
  const needOne = (...wanted: readonly [Capability, ...Capability[]]): void => {
    const has = wanted.find((each) => extension.has(each));
    // Which of them is wanted, what is called will say: named are all.
    needed(extension, has ?? wanted[0], wanted.join(' or '));
  };
  return Object.freeze({
    info: Object.freeze({ ...extension.info }),
    capabilities: Object.freeze([...extension.granted]),
    log: logOf(extension, dependencies.telemetry.log),
    config: configOf(extension, dependencies.settings.extensionSettings, parts.ids),
    service: dependencies.service,
    core: coreOf(extension, dependencies, parts.innerFor),
    get routes(): Router {
      need('ROUTES');
      return parts.routes;
    },
    websocket(path: string, handler: SocketHandler): void {
      need('ROUTES');
      if (typeof path !== 'string' || !path.split('/').every(isSegment)) {
        throw badInput(
          'path',
          'must be a path such as chat or rooms/lobby, without a slash at either end',
        );
      }
      extension.sockets.set(path, handler);
    },
    callerOf(request: object): ExtensionCaller | null {
      need('ROUTES');
      return parts.callerOf(request);
    },
    signalOf(request: object): AbortSignal {
      need('ROUTES');
      return parts.signalOf(request);
    },
    once<T>(request: Request, carryOut: () => Promise<T>): Promise<T> {
      need('ROUTES');
      return parts.once(request, carryOut);
    },
    get toolRegistry(): ToolAccess {
      need('TOOLS');
      return parts.tools;
    },
    get events(): EventAccess {
      needOne('EVENTS_SUB', 'EVENTS_PUB');
      return parts.events;
    },
    get streams(): StreamAccess {
      needOne('EVENTS_SUB', 'EVENTS_PUB');
      return parts.streams;
    },
    get background(): BackgroundAccess {
      need('BACKGROUND_TASKS');
      return parts.background;
    },
  });
}

/** Clients put `.` and `..` in order before they send a path. */
const isSegment = (text: string): boolean => /^[A-Za-z0-9_.~-]+$/.test(text) && !/^\.+$/.test(text);

/** @throws ExtensionError `unavailable` for what goes on in an extension that has failed: it reaches nothing */
function stillThere(extension: Extension): void {
  if (extension.state !== 'failed') return;
  const details = { extension_id: extension.id };
  throw new ExtensionError('unavailable', `the extension ${extension.id} has failed`, details);
}

/** @throws ExtensionError `forbidden` where a capability was not granted; `unavailable` once it has failed */
export function needed(
  extension: Extension,
  capability: Capability,
  named: string = capability,
): void {
  stillThere(extension);
  if (extension.has(capability)) return;
  throw new ExtensionError('forbidden', `this needs the capability ${named}`, {
    required_capability: capability,
    // A copy: what is thrown goes to the extension.
    granted_capabilities: [...extension.granted],
  });
}

function logOf(extension: Extension, log: Log): ExtensionLog {
  const { id } = extension;
  const at =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}): void =>
      log[level](message, { ...fields, extension: id });
  return Object.freeze({
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  });
}

/**
 * `SVC_EXT_<ID>_<NAME>`; in `<ID>` a hyphen is written as `_`. A variable belongs to the extension with the longest id
 * that fits: `SVC_EXT_MAIL_LOG_KEY` is not told to `mail` where there is a `mail_log`.
 */
function configOf(
  extension: Extension,
  settings: Readonly<Record<string, string>>,
  ids: readonly string[],
): Readonly<Record<string, string>> {
  const prefix = prefixOf(extension.id);
  const longer = ids.map(prefixOf).filter((each) => each.startsWith(prefix) && each !== prefix);
  const own = Object.entries(settings)
    .filter(([name]) => name.startsWith(prefix) && name.length > prefix.length)
    .filter(([name]) => !longer.some((each) => name.startsWith(each)))
    .map(([name, value]) => [name.slice(prefix.length).toLowerCase(), value] as const);
  return Object.freeze(Object.fromEntries(own));
}

const prefixOf = (id: string): string => `SVC_EXT_${id.toUpperCase().replaceAll('-', '_')}_`;

function coreOf(
  extension: Extension,
  { core, agents }: Pick<HostDependencies, 'core' | 'agents'>,
  innerFor: ContextParts['innerFor'],
): CoreClient {
  // The built-in extensions send on bodies of requests, whose numbers were checked as they were written.
  const isChecked = extension.source === 'builtin';
  return Object.freeze({
    async request(method, path, { onBehalfOf, ...given } = {}) {
      stillThere(extension);
      const options = { ...given, isChecked };
      if (onBehalfOf === undefined) {
        const token = options.token === undefined ? await agents.tokenOf(extension) : options.token;
        return core.request(method, path, { ...options, token });
      }
      const { token = onBehalfOf.headers.authorization ?? null } = options;
      const inner = innerFor(onBehalfOf);
      const headers = headersOf(options.headers, inner.headers);
      try {
        const answer = await core.request(method, path, { ...options, token, headers });
        const position = answer.headers['x-event-position'];
        if (position !== undefined) LedRequest.of(onBehalfOf)?.committed(position);
        return answer;
      } finally {
        inner.over();
      }
    },
  } satisfies CoreClient);
}

type Headers = Readonly<Record<string, string>>;

/** A reason of the extension's own stands in place of the client's, and so does a key. */
function headersOf(own: Headers = {}, inner: Headers): Headers {
  const { 'x-reason': reason, 'idempotency-key': key, ...known } = inner;
  const said = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  return {
    ...(said.has('x-reason') || reason === undefined ? {} : { 'x-reason': reason }),
    ...(said.has('idempotency-key') || key === undefined ? {} : { 'idempotency-key': key }),
    ...own,
    ...known,
  };
}
