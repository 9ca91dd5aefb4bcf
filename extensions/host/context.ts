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
import { RequestContext } from './routes/request-context.ts';
import type { HostDependencies } from './ports.ts';
import type { Routing } from './routes/routing.ts';

/** The parts of a context. */
export interface ContextParts {
  readonly routes: Router;
  readonly tools: ToolAccess;
  readonly events: EventAccess;
  readonly streams: StreamAccess;
  readonly background: BackgroundAccess;
  /** null before the HTTP interface is set, or without one in this process. */
  readonly routing: () => Routing | null;
  /** Ids of all discovered extensions. */
  readonly ids: readonly string[];
}

/** Builds the context. Parts that were not granted throw `forbidden`. */
export function createContext(
  extension: Extension,
  dependencies: Pick<HostDependencies, 'telemetry' | 'settings' | 'service' | 'core' | 'agents'>,
  parts: ContextParts,
): ExtensionContext {
  const need = (capability: Capability): void => requireCapability(extension, capability);
  const needOne = (...wanted: readonly [Capability, ...Capability[]]): void => {
    const has = wanted.find((each) => extension.has(each));
    // The error names all of them, because any one of them suffices.
    requireCapability(extension, has ?? wanted[0], wanted.join(' or '));
  };
  return Object.freeze({
    info: Object.freeze({ ...extension.info }),
    capabilities: Object.freeze([...extension.granted]),
    log: logOf(extension, dependencies.telemetry.log),
    config: configOf(extension, dependencies.settings.extensionSettings, parts.ids),
    service: dependencies.service,
    core: coreOf(extension, dependencies, parts.routing),
    get routes(): Router {
      need('ROUTES');
      return parts.routes;
    },
    websocket(path: string, handler: SocketHandler): void {
      need('ROUTES');
      if (typeof path !== 'string' || !path.split('/').every(isPathSegment)) {
        throw badInput(
          'path',
          'must be a path like rooms/lobby, without leading or trailing slash',
        );
      }
      extension.sockets.set(path, handler);
    },
    callerOf(request: Request): ExtensionCaller | null {
      need('ROUTES');
      return parts.routing()?.callerOf(request) ?? null;
    },
    signalOf(request: Request): AbortSignal {
      need('ROUTES');
      return parts.routing()?.signalOf(extension, request) ?? new AbortController().signal;
    },
    once<T>(request: Request, run: () => Promise<T>): Promise<T> {
      need('ROUTES');
      return parts.routing()?.once(extension, request, run) ?? run();
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

/** Clients resolve `.` and `..` before they send a path. */
const isPathSegment = (part: string): boolean =>
  /^[A-Za-z0-9_.~-]+$/.test(part) && !/^\.+$/.test(part);

/** @throws ExtensionError `unavailable` once the extension has failed */
function requireNotFailed(extension: Extension): void {
  if (extension.state !== 'failed') return;
  const details = { extension_id: extension.id };
  throw new ExtensionError('unavailable', `extension ${extension.id} has failed`, details);
}

/** @throws ExtensionError `forbidden` if the capability was not granted, `unavailable` if the extension has failed */
export function requireCapability(
  extension: Extension,
  capability: Capability,
  named: string = capability,
): void {
  requireNotFailed(extension);
  if (extension.has(capability)) return;
  throw new ExtensionError('forbidden', `requires the capability ${named}`, {
    required_capability: capability,
    // A copy, because the extension can change an error that it catches.
    granted_capabilities: [...extension.granted],
  });
}

function logOf(extension: Extension, log: Log): ExtensionLog {
  const { id } = extension;
  const logAt =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}): void =>
      log[level](message, { ...fields, extension: id });
  return Object.freeze({
    debug: logAt('debug'),
    info: logAt('info'),
    warn: logAt('warn'),
    error: logAt('error'),
  });
}

/**
 * Reads `SVC_EXT_<ID>_<NAME>`, where a hyphen in the id is written as `_`. A variable belongs to the extension with
 * the longest matching id: `mail` does not see `SVC_EXT_MAIL_LOG_KEY` if there is a `mail_log`.
 */
function configOf(
  extension: Extension,
  settings: Readonly<Record<string, string>>,
  ids: readonly string[],
): Readonly<Record<string, string>> {
  const prefix = settingPrefixOf(extension.id);
  const longer = ids
    .map(settingPrefixOf)
    .filter((each) => each.startsWith(prefix) && each !== prefix);
  const own = Object.entries(settings)
    .filter(([name]) => name.startsWith(prefix) && name.length > prefix.length)
    .filter(([name]) => !longer.some((each) => name.startsWith(each)))
    .map(([name, value]) => [name.slice(prefix.length).toLowerCase(), value] as const);
  return Object.freeze(Object.fromEntries(own));
}

const settingPrefixOf = (id: string): string => `SVC_EXT_${id.toUpperCase().replaceAll('-', '_')}_`;

function coreOf(
  extension: Extension,
  { core, agents }: Pick<HostDependencies, 'core' | 'agents'>,
  routing: ContextParts['routing'],
): CoreClient {
  // Built-in extensions pass on request bodies whose numbers were already checked.
  const isChecked = extension.source === 'builtin';
  return Object.freeze({
    async request(method, path, { onBehalfOf, ...given } = {}) {
      requireNotFailed(extension);
      const options = { ...given, isChecked };
      if (onBehalfOf === undefined) {
        const token = options.token === undefined ? await agents.tokenOf(extension) : options.token;
        return core.request(method, path, { ...options, token });
      }
      const { token = onBehalfOf.headers.authorization ?? null } = options;
      const inner = routing()?.innerFor(extension, onBehalfOf);
      const headers = mergeHeaders(options.headers, inner?.headers);
      try {
        const answer = await core.request(method, path, { ...options, token, headers });
        const position = answer.headers['x-event-position'];
        if (position !== undefined) RequestContext.of(onBehalfOf)?.setEventPosition(position);
        return answer;
      } finally {
        inner?.over();
      }
    },
  } satisfies CoreClient);
}

type Headers = Readonly<Record<string, string>>;

/** The extension's own reason and key take precedence over the client's. */
function mergeHeaders(own: Headers = {}, inner: Headers = {}): Headers {
  const { 'x-reason': reason, 'idempotency-key': key, ...known } = inner;
  const ownNames = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  return {
    ...(ownNames.has('x-reason') || reason === undefined ? {} : { 'x-reason': reason }),
    ...(ownNames.has('idempotency-key') || key === undefined ? {} : { 'idempotency-key': key }),
    ...own,
    ...known,
  };
}
