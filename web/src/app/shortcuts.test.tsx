// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { act, cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { shownToasts, toastFailure } from '@/lib/ui/toasts'

// uPlot calls it at import, and jsdom does not have it.
vi.hoisted(() => {
  vi.stubGlobal('matchMedia', () => new EventTarget())
})

const { dashboardRouter } = await import('./router')

beforeEach(() => {
  vi.stubGlobal('scrollTo', vi.fn())
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  const answer = { items: [], next_cursor: null, formats: {}, name: 'ada', role: 'viewer', projects: [] }
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json(answer)))
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

async function visit(address: string) {
  const router = dashboardRouter(createMemoryHistory({ initialEntries: [address] }))
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
  await screen.findByRole('button', { name: 'Keyboard shortcuts' })
  return router
}

function type(...keys: string[]) {
  for (const key of keys) fireEvent.keyDown(document.activeElement ?? document.body, { key })
}

test('/ focuses the search, where it is text again', async () => {
  await visit('/')
  const search = await screen.findByLabelText('Filter experiments')
  type('/')
  expect(document.activeElement).toBe(search)
  expect(fireEvent.keyDown(search, { key: '/' })).toBe(true)
})

test('Escape without a message is left to the browser, which closes menus', async () => {
  await visit('/')
  expect(fireEvent.keyDown(document.body, { key: 'Escape' })).toBe(true)
  act(() => {
    toastFailure('Pause', { code: 'internal', title: 'No', detail: '', errors: [] })
  })
  expect(fireEvent.keyDown(document.body, { key: 'Escape' })).toBe(false)
})

test('/ leads to the search from pages that have none', async () => {
  const router = await visit('/nowhere')
  type('/')
  await waitFor(() => {
    expect(document.activeElement?.getAttribute('type')).toBe('search')
  })
  expect(router.state.location.pathname).toBe('/')
})

test('g e goes to the experiments', async () => {
  const router = await visit('/nowhere')
  type('e')
  expect(router.state.location.pathname).toBe('/nowhere')
  type('g', 'e')
  await waitFor(() => {
    expect(router.state.location.pathname).toBe('/')
  })
})

test('? lists every shortcut, and what is below the list takes no keys', async () => {
  const router = await visit('/nowhere')
  type('?')
  const list = screen.getByTestId<HTMLDialogElement>('shortcuts')
  expect(list.open).toBe(true)
  const keys = within(list).getAllByRole('term', { hidden: true })
  expect(keys.map(({ textContent }) => textContent)).toEqual(
    ['/', 'g then e', 'n', '?', 'Esc', 'j', 'k', 'x', 'X'].concat([
      '← or →',
      '↑ or ↓',
      'Page up or Page down',
      'Home or End',
    ]),
  )
  type('g', 'e')
  expect(router.state.location.pathname).toBe('/nowhere')
})

test('Escape dismisses a message', async () => {
  await visit('/')
  act(() => {
    toastFailure('Pause', { code: 'internal', title: 'Broken', detail: '', errors: [] })
  })
  expect(screen.getByTestId('toasts').textContent).toContain('Pause failed')
  type('Escape')
  expect(screen.getByTestId('toasts').textContent).toBe('')
  expect(shownToasts()).toEqual([])
})
