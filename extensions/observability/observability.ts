import { badInput, type ExtensionContext } from '../contract.ts';

/** `GET /ext/observability/metrics`: all metrics of this process. */
export function setup({ routes, service }: ExtensionContext): void {
  routes.get('/metrics', async (request, response) => {
    const [name] = Object.keys(request.query);
    if (name !== undefined) {
      throw badInput(name, 'is not a known query parameter; there are none here');
    }
    const text = await service.metricsText();
    response.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    response.send(text);
  });
}
