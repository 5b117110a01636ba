// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { dismissToasts, shownToasts } from '@/lib/ui/toasts'

import { CheckpointSection } from './checkpoint-section'

const FILE = {
  id: 'art_1',
  kind: 'checkpoint',
  name: 'model.safetensors',
  round: 3,
  size: 10,
  digest: 'b3:0',
  href: '/api/v1/artifacts/art_1/content',
  best: false,
}

afterEach(() => {
  cleanup()
  dismissToasts()
  vi.unstubAllGlobals()
})

test('a file that the server refuses is explained', async () => {
  const ranges: (string | null)[] = []
  vi.stubGlobal('fetch', (request: Request) => {
    if (!request.url.endsWith('/content')) return Promise.resolve(Response.json({ items: [FILE], next_cursor: null }))
    ranges.push(request.headers.get('Range'))
    const problem = {
      code: 'round.too_small',
      title: 'Too few participants',
      detail: 'choose a later round',
      status: 403,
    }
    return Promise.resolve(Response.json(problem, { status: 403 }))
  })
  render(
    <QueryClientProvider client={new QueryClient()}>
      <CheckpointSection id="exp_1" />
    </QueryClientProvider>,
  )
  fireEvent.click(await screen.findByTestId('checkpoint-download'))
  await vi.waitUntil(() => shownToasts().length > 0)
  expect(shownToasts()[0]).toMatchObject({
    action: 'Download of model.safetensors',
    problem: { detail: 'choose a later round' },
  })
  expect(ranges).toEqual(['bytes=0-0'])
})
