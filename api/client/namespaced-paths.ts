/**
 * Paths whose responses an admin can narrow to a namespace by `?namespace=`. A test compares them with the endpoints.
 */
const namespaced = [
  '/agents',
  '/agents/:id/webhooks/deliveries',
  '/agents/keys',
  '/approvals',
  '/events',
  '/events/stream/cleanup',
  '/events/stream/recent',
  '/events/topics',
  '/projections/:id/parked',
  '/runs',
  '/runs/live',
  '/runs/stats/summary',
  '/runs/task/:id/stats',
  '/secrets',
  '/secrets/:id',
  '/stats/errors',
  '/stats/summary',
  '/stats/tasks',
  '/stream/cleanup',
  '/stream/recent',
  '/task/:id/stats',
  '/tasks',
  '/tasks/due',
  '/tasks/outcomes',
  '/tasks/:id/backfills',
  '/tools',
  '/topics',
  '/webhooks/resent',
  '/workers',
] as const;

const patterns = namespaced.map((path) => new RegExp(`^${path.replace(':id', '[^/]+')}$`));

const commandsOnMany: readonly string[] = ['/runs/cancel', '/runs/redrive'];

/** Most commands have the namespace in their body or need none. */
export function takesNamespace(method: string, path: string): boolean {
  const isCommandOnSecret = path.startsWith('/secrets/');
  if (method === 'POST') return commandsOnMany.includes(path);
  const isQueried = method === 'GET' || path.endsWith('/cleanup') || isCommandOnSecret;
  return isQueried && patterns.some((pattern) => pattern.test(path));
}
