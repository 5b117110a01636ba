// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Token } from '@/api/types'

import { TokensSection } from './tokens-section'

const LAPTOP: Token = {
  id: 'tok_1',
  name: 'laptop',
  scopes: ['read'],
  created_at: '2026-11-21T12:00:00Z',
  expires_at: null,
  used_at: null,
}

let tokens: Token[]
let asked: unknown[]

beforeEach(() => {
  tokens = []
  asked = []
  // jsdom has the element but not its methods.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
  }
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method === 'GET') return Response.json({ items: tokens })
    if (request.method === 'DELETE') {
      tokens = tokens.filter(({ id }) => !request.url.endsWith(id))
      return new Response(null, { status: 204 })
    }
    const body = (await request.json()) as Pick<Token, 'name'>
    asked.push(body)
    if (body.name === 'taken') return Response.json({ code: 'token.conflict', title: 'Taken' }, { status: 409 })
    tokens = [...tokens, { ...LAPTOP, id: 'tok_2', name: body.name }]
    return Response.json({ ...LAPTOP, name: body.name, token: 'ferret_user_secret' }, { status: 201 })
  })
})

afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

function open() {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <TokensSection />
    </QueryClientProvider>,
  )
}

function fill(name: string, scope: string, days: string) {
  fireEvent.click(screen.getByRole('button', { name: 'New token' }))
  fireEvent.change(screen.getByLabelText(/^Name/), { target: { value: name } })
  fireEvent.change(screen.getByLabelText(/^Scope/), { target: { value: scope } })
  fireEvent.change(screen.getByLabelText(/^Days/), { target: { value: days } })
  submit()
}

function submit() {
  const form = document.querySelector('dialog[open] form')
  if (form === null) throw new Error('no dialog is open')
  fireEvent.submit(form)
}

test('a new token is shown once, and is then in the list', async () => {
  open()
  expect(await screen.findByText(/You have no tokens yet/)).toBeTruthy()
  fill('nightly', 'write', '30')
  expect((await screen.findByTestId('new-token')).textContent).toContain('ferret_user_secret')
  expect((await screen.findByTestId('token-row')).textContent).toContain('nightly')
  expect(asked).toEqual([{ name: 'nightly', scopes: ['read', 'write'], expires_seconds: 30 * 24 * 3600 }])
  expect(document.querySelector('dialog[open]')).toBeNull()
})

test('a token may last until it is revoked', async () => {
  open()
  fill('laptop', 'read', '0')
  await screen.findByTestId('new-token')
  expect(asked).toEqual([{ name: 'laptop', scopes: ['read'], expires_seconds: null }])
})

test('a duplicate name is reported in the dialog', async () => {
  open()
  fill('taken', 'read', '1')
  expect(await screen.findByText('token.conflict')).toBeTruthy()
  expect(screen.queryByTestId('new-token')).toBeNull()
})

test('a token is revoked when one has confirmed it', async () => {
  tokens = [LAPTOP]
  open()
  expect((await screen.findByTestId('token-row')).textContent).toContain('never')
  fireEvent.click(screen.getByRole('button', { name: 'Revoke' }))
  expect(tokens).toHaveLength(1)
  submit()
  await waitFor(() => {
    expect(screen.queryByTestId('token-row')).toBeNull()
  })
})
