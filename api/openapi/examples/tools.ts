/** A step with each built-in tool, without its `uses`. */
export const toolExamples: Readonly<Record<string, { readonly with: object }>> = {
  echo: { with: { text: 'Good morning' } },
  log: { with: { message: '${params.count} orders are open', level: 'warn' } },
  sleep: { with: { seconds: 5 } },
  'wait.event': { with: { topic: 'orders.paid', if: 'event.payload.id == `12`' } },
  approval: { with: { message: 'Pay ${steps.invoice.total} EUR?', approvers: ['scope:payments'] } },
  fail: { with: { message: 'no orders have arrived', retryable: false } },
  transform: { with: { expression: 'orders[?open].id', input: '${steps.fetch.body}' } },
  'http.request': {
    with: {
      method: 'POST',
      url: 'https://shop.example/orders',
      headers: { authorization: 'Bearer ${secrets.SHOP}' },
      body: { limit: '${params.limit}' },
      expect_status: [200, '3xx'],
    },
  },
  'events.publish': { with: { topic: 'orders.counted', payload: { count: 12 } } },
  'tasks.run': { with: { task_id: '01a1fc11-0505-734a-8920-9c4c55a40f65' } },
};
