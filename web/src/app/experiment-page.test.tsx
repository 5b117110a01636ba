// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import type { Event, Experiment } from '@/api/types'
import { FakeEventSource } from '@/lib/testing/fake-event-source'

// They draw on a canvas, which jsdom has not.
vi.mock('@/features/experiment/charts/charts', () => ({ Charts: () => null }))
vi.mock('@/features/compare/compare-page', () => ({ ComparePage: () => null }))

const { dashboardRouter } = await import('./router')

const DEMO = {
  id: 'exp_1',
  name: 'demo',
  state: 'running',
  rounds: 12,
  round: 3,
  participants: 4,
  shapes: null,
  error: null,
  bytes_up: 0,
  bytes_down: 0,
  privacy: null,
  metrics: {},
  last_event_seq: 2,
  cloned_from: null,
  tags: [],
  notes: '',
  archived_at: null,
  started_at: '2026-11-21T12:00:01Z',
  finished_at: null,
  links: { stream: '/api/v1/experiments/exp_1/events/stream' },
} as unknown as Experiment

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

async function visit(changes: Partial<Experiment> = {}, search = '', events: Event[] = []) {
  FakeEventSource.install()
  vi.stubGlobal('scrollTo', vi.fn())
  vi.stubGlobal('fetch', (request: Request) => {
    const path = new URL(request.url).pathname
    const answers: [string, unknown][] = [
      ['/exp_1', { ...DEMO, ...changes }],
      ['/metrics', { series: [] }],
      ['/events', { items: events }],
      ['/me', { name: 'ada', role: 'researcher' }],
      ['/info', { formats: {} }],
    ]
    const found = answers.find(([end]) => path.endsWith(end))
    return Promise.resolve(Response.json(found ? found[1] : { items: [], next_cursor: null }))
  })
  const router = dashboardRouter(createMemoryHistory({ initialEntries: [`/experiments/exp_1${search}`] }))
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  await screen.findByRole('group', { name: 'Actions' })
  return router
}

test('the result comes first: from the base model to now', async () => {
  await visit({ metrics: { rouge_l: { first: 27.43, last: 91.1, best: 91.1 } } })
  expect(screen.getByTestId('result').textContent).toContain('Rouge-L27.4→91.1 %')
})

test('an experiment with secure sums shows who reads what, and the coordinates that noise leaves', async () => {
  const spec = {
    secure: { aggregation: 'masked', least: 3, colluders: 1 },
    privacy: { unit: 'field:patient_id', epsilon: 8, delta: 1e-6 },
    algorithm: { name: 'ferret', K: 44_000 },
  } as unknown as Experiment['spec']
  const readers = [{ who: 'The server', what: 'sums of at least 3' }]
  await visit({ spec, privacy: { readers, useful_coordinates: 7468.4, audit: '1,000 canaries' } })
  const shown = screen.getByTestId('privacy').textContent
  expect(shown).toContain('The serversums of at least 3')
  expect(shown).toContain('ε of all examples with the same patient_idan unknown part of 8 is spent')
  expect(shown).toContain('K* = 7,468, K = 44,000')
  expect(shown).toContain('Last audit1,000 canaries')
})

test('name, state and rounds are above every tab, the result and an old error above none but the first', async () => {
  const error = {
    code: 'ledger.broken',
    title: 'The ledger is broken',
    detail: '',
    errors: [],
    errors_omitted: 0,
    status: 500,
  }
  await visit({ state: 'failed', error }, '?tab=log')
  expect(screen.getByRole('heading', { name: 'demo' }).closest('header')?.textContent).toMatch(/failed.*3 \/ 12/)
  expect(screen.queryByTestId('result')).toBeNull()
  expect(screen.queryByText('The ledger is broken')).toBeNull()
  fireEvent.click(screen.getByRole('tab', { name: 'Overview' }))
  expect(await screen.findByText('The ledger is broken')).toBeTruthy()
  expect(screen.getByTestId('result')).toBeTruthy()
})

test('one action is prominent, final actions are in the menu', async () => {
  await visit({ state: 'completed' })
  const group = screen.getByRole('group', { name: 'Actions' })
  expect([...group.querySelectorAll('.primary')].map((button) => button.textContent)).toEqual(['Extend'])
  expect([...group.querySelectorAll('[popover] button')].map((button) => button.textContent)).toEqual([
    'Archive',
    'Delete',
  ])
})

test('keys move through the tabs, and the URL has the open one', async () => {
  const router = await visit()
  const overview = screen.getByRole('tab', { name: 'Overview' })
  expect(overview.getAttribute('aria-selected')).toBe('true')
  fireEvent.keyDown(overview, { key: 'ArrowRight' })
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?tab=rounds')
  })
  expect(await screen.findByText('No round has opened yet.')).toBeTruthy()
  fireEvent.keyDown(screen.getByRole('tab', { name: 'Rounds & participants' }), { key: 'End' })
  await waitFor(() => {
    expect(screen.getByRole('tab', { name: 'Log' }).getAttribute('aria-selected')).toBe('true')
  })
  expect(document.activeElement?.textContent).toBe('Log')
  expect(screen.getByRole('tabpanel', { name: 'Log' })).toBeTruthy()
})

test('events are a log with rounds, filtered by kind in the address', async () => {
  const time = '2026-11-21T12:30:00Z'
  const events = [
    { seq: 1, type: 'round.opened', round: 7, data: { participants: 5 }, time },
    { seq: 2, type: 'contribution.accepted', round: 7, data: { participant: 'site-a' }, time },
  ]
  const router = await visit({}, '?tab=log', events)
  const log = await screen.findByTestId('events')
  await within(log).findByText('From site-a')
  expect(log.textContent).toContain('2 of 2 shown')
  fireEvent.click(within(log).getByRole('button', { name: 'round' }))
  await waitFor(() => {
    expect(router.state.location.searchStr).toBe('?tab=log&kind=round')
  })
  expect(log.textContent).toContain('Opened for 5 participants')
  expect(log.textContent).not.toContain('site-a')
})
