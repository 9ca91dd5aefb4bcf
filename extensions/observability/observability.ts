import type { ExtensionContext } from '../contract.ts';

/** `GET /ext/observability/metrics`: all metrics of the process that answers. */
export function setup({ routes, service }: ExtensionContext): void {
  routes.get('/metrics', async (_request, response) => {
    const text = await service.metricsText();
    response.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    response.send(text);
  });
}
