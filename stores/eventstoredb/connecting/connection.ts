import { EventStoreDBClient, UnavailableError, type Credentials } from '@eventstore/db-client';
import { readFileSync } from 'node:fs';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { apart } from './apart.ts';
import type { ConnectionSettings } from './connection-url.ts';
import { wordsOf } from './faults.ts';
import { pause, pauseAfter, within } from './pause.ts';
import type { Timings } from './timings.ts';
import { state, UnansweredAttempts } from './unanswered.ts';

/** How long the client's calls have to end when it is closed. Milliseconds. */
const DISPOSE_LIMIT = 500;

type Channel = ReturnType<Connection['getChannel']> extends Promise<infer C> ? C : never;
type Client = Parameters<Connection['handleError']>[0];

/**
 * The client, with what it lacks: an end, knowing whether it is connected, and a limit on how long it tries. Shares
 * nothing with others of its process.
 */
export class Connection extends EventStoreDBClient {
  /**
   * To be given with **every** append. Without credentials of its own, an append goes through one
   * stream that all share, which has no deadline, fails with its neighbours, and may never settle. On
   * a connection without security they are not sent.
   */
  readonly credentials: Credentials;
  /**
   * To be given with every append: whether a node that does not lead is to say so, which makes the client go to the
   * one that does. Otherwise it passes appends on and stays the one that is read from, although it is behind. Not where
   * one node alone is named: what others are called may be of no use where this process runs.
   */
  readonly requiresLeader: boolean;
  readonly #timings: Timings;
  #channel: Channel | undefined;
  #closed = false;

  constructor(settings: ConnectionSettings, timings: Timings, telemetry: Telemetry) {
    // Overloads: each kind of settings has its own signature, hence the three-way choice in one value.
    super(
      endpointsOf(apart(settings)) as { endpoint: string },
      channelCredentialsOf(settings),
      settings.credentials,
    );
    this.requiresLeader =
      (settings.discover || settings.hosts.length > 1) &&
      (settings.nodePreference ?? 'leader') === 'leader';
    this.credentials = settings.credentials ?? { username: 'none', password: 'none' };
    this.#timings = timings;
    const handle = this.handleError;
    // The client calls this without waiting for it. While a cluster is searched it waits for the
    // channel, and a search that fails would end the process as an unhandled rejection.
    this.handleError = (client, error) =>
      handle(client, error).catch((failure: unknown) => {
        telemetry.log.debug('EventStoreDB could not be reached again', {
          failure: wordsOf(failure),
        });
      });
    const attempts = new UnansweredAttempts<Channel>(timings.establishMs, (channel, afterMs) => {
      telemetry.log.debug('EventStoreDB does not answer an attempt to connect', {
        node: channel.getTarget(),
        milliseconds: afterMs,
      });
      void this.#giveUp(channel);
    });
    const getChannel = this.getChannel;
    this.getChannel = async () => {
      if (this.#closed) throw new Error('The connection is closed');
      const channel = await getChannel();
      // Here, and not where appends wait: reads and pings never ask whether there is a connection.
      if (channel !== this.#channel) attempts.watch(channel);
      this.#channel = channel;
      return channel;
    };
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Whether there is a connection now, or becomes one in `connectMs`. Where this says no, nothing has
   * been sent, which no error of a failed call can say for certain.
   */
  async isConnected(): Promise<boolean> {
    if (this.#channel?.getConnectivityState(false) === state.READY) return true;
    const end = performance.now() + this.#timings.connectMs;
    for (let failures = 1; ; failures += 1) {
      if (await this.#tryToConnect(end)) return true;
      const wait = pauseAfter(failures, this.#timings.firstPauseMs, this.#timings.longestPauseMs);
      if (this.#closed || performance.now() + wait >= end) return false;
      await pause(wait);
    }
  }

  /** Ends everything under way and closes the socket, which the client's own `dispose` leaves open. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // It cancels at once all that is under way, and then waits for each to end: for some that had failed while
    // the server was away, for ever.
    await within(this.dispose(), DISPOSE_LIMIT);
    this.#channel?.close();
  }

  async #tryToConnect(end: number): Promise<boolean> {
    const channel = await within(
      this.getChannel().catch(() => undefined),
      end - performance.now(),
    );
    if (channel === undefined) return false;
    for (;;) {
      const now = channel.getConnectivityState(false);
      if (now === state.READY) return true;
      if (now === state.SHUTDOWN) return false;
      if (now === state.TRANSIENT_FAILURE) return this.#giveUp(channel);
      // Never of one that was shut down, which would connect for nobody.
      if (now === state.IDLE) channel.getConnectivityState(true);
      const changed = await new Promise<boolean>((resolve) => {
        channel.watchConnectivityState(now, Date.now() + end - performance.now(), (error) =>
          resolve(error === undefined),
        );
      });
      if (!changed) return false;
    }
  }

  /**
   * Has the client close a channel and look for a node again, as it does itself after a call that failed; calls that wait
   * for the channel fail at once. One that it has no more is left alone.
   */
  async #giveUp(channel: Channel): Promise<false> {
    const client: Pick<Client, 'getChannel'> = { getChannel: () => channel };
    const error = new UnavailableError(undefined, 'No connection was made');
    await this.handleError(client as Client, error);
    return false;
  }
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
