import { benchHttpGet } from './http-get.ts';
import { benchHttpLists } from './http-lists.ts';
import { benchHttpPost } from './http-post.ts';
import { benchSse } from './sse.ts';
import type { Work } from '../works.ts';

const aim = 'the aim';

/** The works over HTTP. */
export const httpWorks: Readonly<Record<string, Work>> = {
  'http-get': {
    targets: [{ figure: 'ratio', is: 'at least', value: 0.6, because: 'beside bare Express' }],
    count: ({ seconds }) => seconds,
    async measure({ seconds }) {
      const { ours, bare } = await benchHttpGet(seconds);
      return {
        'requests/s': ours.perSecond,
        'bare requests/s': bare.perSecond,
        ratio: ours.perSecond / bare.perSecond,
        'p50 ms': ours.p50,
        'p99 ms': ours.p99,
        'cpu us': ours.cpu,
        'bare cpu us': bare.cpu,
      };
    },
  },
  'http-post': {
    targets: [
      { figure: 'p50 ms', is: 'less than', value: 10, because: aim },
      { figure: 'ratio', is: 'at least', value: 0.6, because: 'beside one durable insert' },
    ],
    count: ({ seconds }) => seconds,
    async measure({ seconds }) {
      const { ours, bare } = await benchHttpPost(seconds);
      return {
        'requests/s': ours.perSecond,
        'bare requests/s': bare.perSecond,
        ratio: ours.perSecond / bare.perSecond,
        'p50 ms': ours.p50,
        'p99 ms': ours.p99,
        'bare p50 ms': bare.p50,
        'cpu us': ours.cpu,
        'bare cpu us': bare.cpu,
      };
    },
  },
  'http-lists': {
    targets: [
      { figure: 'covered p95 ms', is: 'less than', value: 50, because: aim },
      { figure: 'worst p95 ms', is: 'less than', value: 250, because: aim },
      { figure: 'statistics p95 ms', is: 'less than', value: 20, because: aim },
      { figure: 'others p95 ms', is: 'less than', value: 20, because: aim },
      { figure: 'other lists p95 ms', is: 'less than', value: 20, because: aim },
    ],
    count: ({ listed }) => listed,
    async measure({ listed, store }) {
      const made = await benchHttpLists(listed, store);
      return {
        'covered p95 ms': made.covered,
        'worst p95 ms': made.worst,
        'page 1 p95 ms': made.first,
        'page 1,000 p95 ms': made.deep,
        'statistics p95 ms': made.statistics,
        'others p95 ms': made.beside,
        'other lists p95 ms': made.listBeside,
      };
    },
  },
  sse: {
    targets: [
      { figure: 'worst ms', is: 'less than', value: 1_000, because: 'to the last client' },
      { figure: 'grown MiB', is: 'less than', value: 200, because: 'some read nothing' },
    ],
    count: ({ clients }) => clients,
    async measure({ clients }) {
      const made = await benchSse(clients);
      return {
        'p50 ms': made.p50,
        'worst ms': made.worst,
        'grown MiB': made.grownMiB,
        'resident MiB': made.residentMiB,
        'let go': made.letGo,
      };
    },
  },
};
