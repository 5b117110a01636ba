// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { BrowserSession } from '@/api/types'

import { SessionsSection } from './sessions-section'

const HERE: BrowserSession = {
  id: 'ses_1',
  link: false,
  current: true,
  address: '10.0.0.7',
  token: null,
  created_at: '2026-11-21T12:00:00Z',
  expires_at: '2026-11-28T12:00:00Z',
}

let sessions: BrowserSession[]

beforeEach(() => {
  sessions = [HERE, { ...HERE, id: 'ses_2', current: false }, { ...HERE, id: 'ses_3', current: false, link: true }]
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
  }
  vi.stubGlobal('fetch', (request: Request) => {
    if (request.method === 'GET') return Promise.resolve(Response.json({ items: sessions }))
    sessions = sessions.filter(({ id }) => !request.url.endsWith(id))
    return Promise.resolve(new Response(null, { status: 204 }))
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

test('a session ends when one has confirmed it, and this browser signs out elsewhere', async () => {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <SessionsSection />
    </QueryClientProvider>,
  )
  const rows = await screen.findAllByTestId('session-row')
  expect(rows.map((row) => row.querySelector('th')?.textContent)).toEqual([
    'This browser',
    'Another browser',
    'Unused sign-in link',
  ])
  expect(rows[0]?.textContent).toContain('10.0.0.7')
  const [end] = screen.getAllByRole('button', { name: 'End' })
  if (end === undefined) throw new Error('no session can be ended')
  fireEvent.click(end)
  expect(sessions).toHaveLength(3)
  const form = document.querySelector('dialog[open] form')
  if (form === null) throw new Error('no dialog is open')
  fireEvent.submit(form)
  await waitFor(() => {
    expect(screen.getAllByTestId('session-row')).toHaveLength(2)
  })
  expect(sessions.map(({ id }) => id)).toEqual(['ses_1', 'ses_3'])
})
