import gossipServices from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import featureServices from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { IStreamsServer } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { Server, ServerCredentials, status, type sendUnaryData } from '@grpc/grpc-js';
import { readFileSync } from 'node:fs';
import { Access } from './access.ts';
import { handleAppend } from './append-call.ts';
import type { AppendingServer, ReceivedAppend } from './append-outcome.ts';
import { handleBatchAppend, streamsService, type BatchCall } from './batch-append-call.ts';
import { Faults } from './faults.ts';
import { Log, type ProposedEvent } from './log.ts';
import { failure, streamNameOf, unavailable } from './messages.ts';
import { BACKWARDS, fail, handleRead, type ReadCall } from './read-call.ts';
import { OpenSubscription } from './subscription-call.ts';

/** Concurrent calls of one connection: Kestrel's default, which servers keep. */
const MAX_CONCURRENT_CALLS = 100;

/**
 * A stand-in for an EventStoreDB server within the test process. It speaks gRPC with the client's
 * own service definitions, so tests use the real client on a real connection. The server can fail
 * in every way seen in real ones. It shows that the adapter copes; the meaning of real responses is
 * tested by the same contract suite over `SVC_TEST_ESDB_URL`.
 */
export class EventStoreDbServer {
  readonly log: Log;
  readonly faults = new Faults();
  /** Its users; none by default. */
  readonly access = new Access();
  /** Every received append, in order, including refused ones. */
  readonly appends: ReceivedAppend[] = [];
  /** The number of streams of `BatchAppend`, including refused ones. */
  batchStreams = 0;
  /** The number of reads, without subscriptions. */
  reads = 0;
  /** The reads of the whole log among them, in order. */
  readonly readsOfLog: { readonly backwards: boolean; readonly count: number }[] = [];
  /** The number of subscriptions. */
  subscribed = 0;
  /** The announced leader of its cluster; by default itself. */
  leaderPort: number | undefined;
  readonly #subscriptions = new Set<OpenSubscription>();
  readonly #batchCalls = new Set<BatchCall>();
  readonly #server: Server;
  #port = 0;

  private constructor(log: Log) {
    this.log = log;
    this.#server = new Server({ 'grpc.max_concurrent_streams': MAX_CONCURRENT_CALLS });
    this.#server.addService(streamsService, this.#streams());
    this.#server.addService(featureServices.ServerFeaturesService, {
      getSupportedMethods: (_call: unknown, callback: sendUnaryData<features.SupportedMethods>) =>
        callback(null, supportedMethods()),
    });
    this.#server.addService(gossipServices.GossipService, {
      read: (_call: unknown, callback: sendUnaryData<gossip.ClusterInfo>) =>
        callback(null, this.#cluster()),
    });
  }

  /**
   * Starts a server on the loopback interface.
   * @param options.port the port of an earlier one; default: any free one
   * @param options.log the log of an earlier one
   * @param options.certificate files for TLS; default: none
   */
  static async start(
    options: {
      readonly port?: number;
      readonly log?: Log;
      readonly certificate?: { readonly cert: string; readonly key: string };
    } = {},
  ): Promise<EventStoreDbServer> {
    const server = new EventStoreDbServer(options.log ?? new Log());
    server.#port = await new Promise<number>((resolve, reject) => {
      server.#server.bindAsync(
        `127.0.0.1:${options.port ?? 0}`,
        credentialsOf(options.certificate),
        (error, port) => (error === null ? resolve(port) : reject(error)),
      );
    });
    return server;
  }

  get port(): number {
    return this.#port;
  }

  /** The connection string for the adapter. */
  get url(): string {
    return `esdb://127.0.0.1:${this.#port}?tls=false`;
  }

  /** The subscriptions that are open now. */
  get subscriptions(): readonly OpenSubscription[] {
    return [...this.#subscriptions];
  }

  /**
   * Writes an event like another program, or like the server itself (names that start with `$`).
   */
  write(stream: string, type: string, data: string, metadata = ''): void {
    const event: ProposedEvent = {
      id: crypto.randomUUID(),
      type,
      contentType: 'application/json',
      data: Buffer.from(data),
      metadata: Buffer.from(metadata),
    };
    this.log.append(stream, [event], -2);
  }

  /** The streams of `BatchAppend` that are open now. */
  get openBatchStreams(): number {
    return this.#batchCalls.size;
  }

  /** Ends the streams of `BatchAppend`, with an error or without one, as a proxy may do. */
  breakBatchStreams(how: 'error' | 'clean-end' = 'error'): void {
    for (const call of this.#batchCalls) {
      if (how === 'error') call.emit('error', unavailable());
      else call.end();
    }
  }

  /** Breaks every connection at once and stops. */
  stop(): void {
    for (const subscription of this.#subscriptions) subscription.fallSilent();
    this.#server.forceShutdown();
  }

  #streams(): StreamsServer {
    return {
      append: (call, callback) => {
        if (this.access.admits(call, callback)) handleAppend(call, callback, this.#appending());
      },
      read: (call) => {
        if (!this.access.admits(call)) return;
        this.#read(call).catch((error: unknown) =>
          fail(call, failure(status.UNKNOWN, String(error))),
        );
      },
      delete: (call, callback) => {
        const options = call.request.getOptions();
        this.log.softDelete(streamNameOf(options?.getStreamIdentifier()));
        callback(null, new streams.DeleteResp().setNoPosition(new shared.Empty()));
      },
      tombstone: (call, callback) => {
        const options = call.request.getOptions();
        this.log.tombstone(streamNameOf(options?.getStreamIdentifier()));
        callback(null, new streams.TombstoneResp().setNoPosition(new shared.Empty()));
      },
      batchAppend: (call: BatchCall) => {
        if (!this.access.admits(call)) return;
        this.batchStreams += 1;
        this.#batchCalls.add(call);
        call.on('close', () => this.#batchCalls.delete(call));
        call.on('cancelled', () => this.#batchCalls.delete(call));
        handleBatchAppend(call, this.#appending());
      },
    };
  }

  #appending(): AppendingServer {
    return {
      log: this.log,
      faults: this.faults,
      leaderPort: () => this.leaderPort ?? this.#port,
      received: (append) => this.appends.push(append),
    };
  }

  async #read(call: ReadCall): Promise<void> {
    if (call.request.getOptions()?.hasSubscription() !== true) {
      this.reads += 1;
      const options = call.request.getOptions();
      if (options?.hasAll() === true) {
        const backwards = options.getReadDirection() === BACKWARDS;
        this.readsOfLog.push({ backwards, count: Number(options.getCount()) });
      }
      return handleRead(call, this.log, this.faults);
    }
    this.subscribed += 1;
    const subscription = new OpenSubscription(call, this.log, this.faults);
    this.#subscriptions.add(subscription);
    try {
      await subscription.run();
    } finally {
      this.#subscriptions.delete(subscription);
    }
  }

  #cluster(): gossip.ClusterInfo {
    const port = this.leaderPort ?? this.#port;
    const leader = new gossip.MemberInfo()
      .setState(gossip.MemberInfo.VNodeState.LEADER)
      .setIsAlive(true)
      .setTimeStamp('0')
      .setInstanceId(new shared.UUID().setString(crypto.randomUUID()))
      .setHttpEndPoint(new gossip.EndPoint().setAddress('127.0.0.1').setPort(port));
    return new gossip.ClusterInfo().setMembersList([leader]);
  }
}

function credentialsOf(
  certificate: { readonly cert: string; readonly key: string } | undefined,
): ServerCredentials {
  if (certificate === undefined) return ServerCredentials.createInsecure();
  const pair = {
    cert_chain: readFileSync(certificate.cert),
    private_key: readFileSync(certificate.key),
  };
  return ServerCredentials.createSsl(null, [pair]);
}

type StreamsServer = Pick<IStreamsServer, 'append' | 'read' | 'delete' | 'tombstone'> & {
  batchAppend(call: BatchCall): void;
};

/** Also offers the batch stream, which the client itself would use by default. */
function supportedMethods(): features.SupportedMethods {
  const methods = ['append', 'batchappend', 'read', 'delete', 'tombstone'].map((name) =>
    new features.SupportedMethod()
      .setServiceName('event_store.client.streams.streams')
      .setMethodName(name),
  );
  return new features.SupportedMethods()
    .setEventStoreServerVersion('24.10.0')
    .setMethodsList(methods);
}
