// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from '@tanstack/react-router'
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { ComparePage } from './compare-page'
import { parseCompareUrl } from './url-state'

// jsdom has no canvas.
vi.mock('uplot', () => ({
  default: class {
    destroy = vi.fn()
    setSize = vi.fn()
    setData = vi.fn()
  },
}))

interface Fake {
  seed?: number
  state?: string
  loss?: number[]
  K?: number
}

function answerOf(id: string, { seed = 1, state = 'completed', loss = [], K = 8 }: Fake, path: string) {
  const points = (values: number[]) => values.map((value, round) => ({ round, value, time: '', bytes_up: round }))
  if (path.endsWith('/metrics')) {
    const bytes = loss.map((_, round) => round * 10)
    return {
      series: [
        { name: 'eval_loss', points: points(loss) },
        { name: 'bytes_up', points: points(bytes) },
      ],
    }
  }
  const spec = { name: id, seed, participants: { simulated: 2, fraction: 1 }, algorithm: { name: 'ferret', K } }
  return {
    id,
    name: id,
    state,
    stalled: null,
    round: 1,
    rounds: 2,
    participants: 2,
    spec,
    metrics: {},
    bytes_up: 20,
    bytes_down: 0,
  }
}

function serve(runs: Record<string, Fake>) {
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe = vi.fn()
      disconnect = vi.fn()
    },
  )
  vi.stubGlobal('scrollTo', vi.fn())
  vi.stubGlobal('matchMedia', () => new EventTarget())
  vi.stubGlobal('fetch', (request: Request) => {
    const path = new URL(request.url).pathname
    const id = /experiments\/([^/]+)/.exec(path)?.[1]
    if (id === undefined) return Promise.resolve(Response.json({ items: [], next_cursor: null }))
    const run = runs[id]
    if (run !== undefined) return Promise.resolve(Response.json(answerOf(id, run, path)))
    return Promise.resolve(
      Response.json({ code: 'experiment.not_found', title: 'No such experiment' }, { status: 404 }),
    )
  })
}

function visit(address: string) {
  const root = createRootRoute({ component: Outlet })
  const page = createRoute({
    getParentRoute: () => root,
    path: '/compare',
    validateSearch: parseCompareUrl,
    component: function Page() {
      const navigate = page.useNavigate()
      return <ComparePage view={page.useSearch()} onView={(search) => void navigate({ search, replace: true })} />
    },
  })
  const history = createMemoryHistory({ initialEntries: [address] })
  const router = createRouter({ routeTree: root.addChildren([page]), history, parseSearch, stringifySearch })
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  return () => router.state.location.searchStr
}

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

test('two runs: last and best, a point each, and only what differs', async () => {
  serve({ a: { loss: [3, 1, 2] }, b: { loss: [3, 2.5], K: 16 } })
  visit('/compare?ids=a,b')
  await waitFor(() => {
    expect(screen.getByTestId('compare-frontier').dataset.points).toBe('2')
  })
  expect(screen.getByTestId('compare-overlay').dataset.points).toBe('5')
  const [first] = screen.getAllByTestId('compare-run')
  expect(first?.textContent).toContain('2.0001.000')
  expect(screen.getAllByTestId('compare-field').map((row) => row.textContent)).toEqual(['algorithm.K816'])
})

test('a pinned baseline turns figures into differences, and the address holds it', async () => {
  serve({ a: { loss: [3, 1] }, b: { loss: [3, 2.5] } })
  const address = visit('/compare?ids=a,b')
  fireEvent.click(await screen.findByRole('button', { name: 'pin a as the baseline' }))
  await waitFor(() => {
    expect(address()).toBe('?ids=a,b&baseline=a')
  })
  await waitFor(() => {
    expect(screen.getAllByTestId('compare-run')[1]?.textContent).toContain('+1.500, worse2.500')
  })
})

test('runs that differ in their seed only become one', async () => {
  serve({ a: { loss: [3, 1], seed: 1 }, b: { loss: [3, 2], seed: 2 } })
  visit('/compare?ids=a,b&groups=seeds')
  const row = await screen.findByTestId('compare-run')
  await within(row).findByText('a (2 seeds)')
  await waitFor(() => {
    expect(row.textContent).toContain('1.500 ± 0.7071')
  })
})

test('an id that does not exist is named and can be removed', async () => {
  serve({ a: { loss: [3] } })
  const address = visit('/compare?ids=gone,a')
  expect((await screen.findByTestId('compare-missing')).textContent).toContain('gone does not exist, or belongs to')
  expect(screen.getByTestId('compare-run').textContent).toContain('a')
  fireEvent.click(screen.getByRole('button', { name: 'Remove gone' }))
  await waitFor(() => {
    expect(address()).toBe('?ids=,a')
  })
})

test('one run without metrics, still running', async () => {
  serve({ a: { state: 'running' } })
  visit('/compare?ids=a&y=log')
  expect((await screen.findByTestId('compare-overlay')).dataset.points).toBe('0')
  expect(screen.getByText(/has a value of this metric yet/)).toBeTruthy()
  expect(screen.getByTestId('compare-live').textContent).toContain('1 unfinished, refreshed every 5 s')
  expect(screen.getByTestId('compare-same').textContent).toContain('There is only one run, so nothing differs')
})

test('a hidden run leaves the charts and stays in the table', async () => {
  serve({ a: { loss: [3, 1] }, b: { loss: [3] } })
  const address = visit('/compare?ids=a,b')
  fireEvent.click(await screen.findByRole('checkbox', { name: 'Show a' }))
  await waitFor(() => {
    expect(screen.getByTestId('compare-overlay').dataset.points).toBe('1')
  })
  expect(address()).toBe('?ids=a,b&hidden=a')
  expect(screen.getAllByTestId('compare-run')).toHaveLength(2)
})

test('no run gives a prompt to add some, more than twenty are too many', async () => {
  serve({})
  visit('/compare')
  expect(await screen.findByText('Nothing to compare yet')).toBeTruthy()
  cleanup()
  visit(`/compare?ids=${Array.from({ length: 22 }, (_, index) => `x${index}`).join(',')}`)
  expect((await screen.findByTestId('compare-over')).textContent).toContain('x20, x21')
})
