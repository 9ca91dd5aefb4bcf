import { EventStoreDBClient, UnavailableError, type Credentials } from '@eventstore/db-client';
import services from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { readFileSync } from 'node:fs';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { pause, pauseAfter, withTimeout } from '../../waiting.ts';
import type { ConnectionSettings } from './connection-url.ts';
import { describeError } from './client-errors.ts';
import { hideServerNameWarning } from './server-name-warning.ts';
import type { Timings } from './timings.ts';
import { CONNECTIVITY, AttemptTimeouts } from './attempt-timeouts.ts';

/** How long running calls may take to end when the client is closed. Milliseconds. */
const DISPOSE_TIMEOUT_MS = 500;

/** The client's default interval between keep-alive pings. Milliseconds. */
const KEEP_ALIVE_MS = 10_000;
/** Node's longest timer: -1 in the connection string. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Connections with distinct settings; their keep-alive intervals differ by less than a second. */
const MAX_DISTINCT_INTERVALS = 1_000;

let made = 0;

type Channel = ReturnType<Connection['getChannel']> extends Promise<infer C> ? C : never;
type Client = Parameters<Connection['handleError']>[0];

/** A running call of `BatchAppend`; its requests are serialised already. */
export type BatchCall = ReturnType<
  typeof services.StreamsClient.prototype.makeBidiStreamRequest<Buffer, streams.BatchAppendResp>
>;

/**
 * The client with its missing functions: closing, knowing whether it is connected, and a limit on connecting. Shares no
 * gRPC channel with others of its process.
 */
export class Connection extends EventStoreDBClient {
  /**
   * Must be given with every append of the client. Without them, the client uses its own batch stream, where appends have
   * no deadline and may never settle. They are not sent on a connection without TLS.
   */
  readonly credentials: Credentials;
  /**
   * Must be given with every append: a follower then refuses, and the client goes to the leader. Otherwise the follower
   * would forward appends and serve stale reads. False where only one node is named, as other addresses may be unusable.
   */
  readonly requiresLeader: boolean;
  readonly #timings: Timings;
  #channel: Channel | undefined;
  #closed = false;

  constructor(settings: ConnectionSettings, timings: Timings, telemetry: Telemetry) {
    // The constructor is overloaded by the kind of settings.
    super(
      endpointsOf(withOwnChannel(settings)) as { endpoint: string },
      channelCredentialsOf(settings),
      settings.credentials,
    );
    if (settings.secure) hideServerNameWarning();
    this.requiresLeader =
      (settings.discover || settings.hosts.length > 1) &&
      (settings.nodePreference ?? 'leader') === 'leader';
    this.credentials = settings.credentials ?? { username: 'none', password: 'none' };
    this.#timings = timings;
    const handle = this.handleError;
    // The client does not await this. A failed search for a cluster would end the process as an unhandled rejection.
    this.handleError = (client, error) =>
      handle(client, error).catch((failure: unknown) => {
        telemetry.log.debug('EventStoreDB still unreachable', {
          failure: describeError(failure),
        });
      });
    const attempts = new AttemptTimeouts<Channel>(timings.establishMs, (channel, afterMs) => {
      telemetry.log.debug('EventStoreDB did not answer a connection attempt', {
        node: channel.getTarget(),
        milliseconds: afterMs,
      });
      void this.#giveUp(channel);
    });
    const getChannel = this.getChannel;
    this.getChannel = async () => {
      if (this.#closed) throw new Error('the connection is closed');
      const channel = await getChannel();
      // Watched here, because reads and pings never ask whether there is a connection.
      if (channel !== this.#channel) attempts.watch(channel);
      this.#channel = channel;
      return channel;
    };
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The channel of the last `isConnected`; each reconnection creates another one. */
  get channel(): Channel | undefined {
    return this.#channel;
  }

  /**
   * Opens a call of `BatchAppend` on the present channel. The call has no deadline, and ends with the connection. If it
   * fails, the client looks for a node again, as after any failed call.
   * @param opened called with the call, before any of its events
   */
  async openBatchAppend(opened: (call: BatchCall) => void): Promise<void> {
    const { path, responseDeserialize } = services.StreamsService.batchAppend;
    const open = this.GRPCStreamCreator(services.StreamsClient, 'batchAppend', (client) => {
      const { credentials, requiresLeader } = this;
      const call = client.makeBidiStreamRequest(
        path,
        asItIs,
        responseDeserialize,
        ...this.callArguments({ credentials, requiresLeader }, { deadline: Infinity }),
      );
      opened(call);
      return call;
    });
    await open();
  }

  /** Makes the client look for a node again, because the node of a channel can't serve. */
  async leave(channel: Channel): Promise<void> {
    await this.#giveUp(channel);
  }

  /** Whether there is a connection within `connectMs`. If not, nothing was sent, which no failed call can promise. */
  async isConnected(): Promise<boolean> {
    if (this.#channel?.getConnectivityState(false) === CONNECTIVITY.READY) return true;
    const end = performance.now() + this.#timings.connectMs;
    for (let failures = 1; ; failures += 1) {
      if (await this.#tryToConnect(end)) return true;
      const wait = pauseAfter(failures, this.#timings.firstPauseMs, this.#timings.longestPauseMs);
      if (this.#closed || performance.now() + wait >= end) return false;
      await pause(wait);
    }
  }

  /** Ends all running calls and closes the socket, which the client's own `dispose` leaves open. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // The client cancels all calls and waits for their end. Some calls that failed while the server was down never end.
    await withTimeout(this.dispose(), DISPOSE_TIMEOUT_MS);
    this.#channel?.close();
  }

  async #tryToConnect(end: number): Promise<boolean> {
    const channel = await withTimeout(
      this.getChannel().catch(() => undefined),
      end - performance.now(),
    );
    if (channel === undefined) return false;
    for (;;) {
      const now = channel.getConnectivityState(false);
      if (now === CONNECTIVITY.READY) return true;
      if (now === CONNECTIVITY.SHUTDOWN) return false;
      if (now === CONNECTIVITY.TRANSIENT_FAILURE) return this.#giveUp(channel);
      // A channel that was shut down is left alone, because it would reconnect.
      if (now === CONNECTIVITY.IDLE) channel.getConnectivityState(true);
      const changed = await new Promise<boolean>((resolve) => {
        channel.watchConnectivityState(now, Date.now() + end - performance.now(), (error) =>
          resolve(error === undefined),
        );
      });
      if (!changed) return false;
    }
  }

  /**
   * Has the client drop a channel and look for a node again, as after a failed call. Calls waiting for the channel fail
   * at once. A channel that it no longer uses is left alone.
   */
  async #giveUp(channel: Channel): Promise<false> {
    const client: Pick<Client, 'getChannel'> = { getChannel: () => channel };
    const error = new UnavailableError(undefined, 'no connection was made');
    await this.handleError(client as Client, error);
    return false;
  }
}

function asItIs(request: Buffer): Buffer {
  return request;
}

/**
 * The same settings with a distinct keep-alive interval. gRPC shares one channel between clients with equal settings,
 * with its limit on concurrent calls, and an unanswered channel stays in use as long as any call is on it.
 */
function withOwnChannel(settings: ConnectionSettings): ConnectionSettings {
  const { keepAliveInterval = KEEP_ALIVE_MS } = settings.numbers;
  const place = made++ % MAX_DISTINCT_INTERVALS;
  const later = keepAliveInterval + place;
  const other = later < MAX_TIMER_MS ? later : keepAliveInterval - place;
  return { ...settings, numbers: { ...settings.numbers, keepAliveInterval: other } };
}

function endpointsOf(settings: ConnectionSettings): object {
  const { hosts, discover, numbers, connectionName, nodePreference } = settings;
  const common = {
    ...numbers,
    ...(connectionName === undefined ? {} : { connectionName }),
    ...(nodePreference === undefined ? {} : { nodePreference }),
  };
  if (discover) return { ...common, discover: hosts[0] };
  return hosts.length > 1
    ? { ...common, endpoints: [...hosts] }
    : { ...common, endpoint: hosts[0] };
}

function channelCredentialsOf(settings: ConnectionSettings): {
  insecure: boolean;
  rootCertificate?: Buffer;
  userCertFile?: Buffer;
  userKeyFile?: Buffer;
} {
  if (!settings.secure) return { insecure: true };
  const { tlsCAFile, userCertFile, userKeyFile } = settings.files;
  return {
    insecure: false,
    ...(tlsCAFile === undefined ? {} : { rootCertificate: readFileSync(tlsCAFile) }),
    ...(userCertFile === undefined ? {} : { userCertFile: readFileSync(userCertFile) }),
    ...(userKeyFile === undefined ? {} : { userKeyFile: readFileSync(userKeyFile) }),
  };
}
