import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { openEventStream, type StreamStatus } from './event-stream'
import { FakeEventSource } from './fake-event-source'

beforeEach(() => {
  vi.useFakeTimers()
  FakeEventSource.install()
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function follow() {
  const messages: string[] = []
  const statuses: StreamStatus[] = []
  const close = openEventStream({
    url: '/stream',
    after: 40,
    types: ['round.opened'],
    onMessage: (data) => messages.push(data),
    onStatus: (status) => statuses.push(status),
  })
  return { messages, statuses, close }
}

test('hands on the events of the named types', () => {
  const { messages, statuses } = follow()
  FakeEventSource.latest.open()
  FakeEventSource.latest.send({ seq: 1, type: 'round.opened' })
  FakeEventSource.latest.send({ seq: 2, type: 'something.else' })
  expect(messages).toEqual(['{"seq":1,"type":"round.opened"}'])
  expect(statuses).toEqual(['connecting', 'live'])
})

test('leaves reconnecting to the browser while that tries', () => {
  const { statuses } = follow()
  FakeEventSource.latest.fail(FakeEventSource.CONNECTING)
  vi.advanceTimersByTime(60_000)
  expect(FakeEventSource.opened).toHaveLength(1)
  FakeEventSource.latest.open()
  expect(statuses).toEqual(['connecting', 'reconnecting', 'live'])
})

test('opens a stream of its own behind the last event where the browser gave up', () => {
  follow()
  FakeEventSource.latest.send({ seq: 41, type: 'round.opened' })
  FakeEventSource.latest.fail(FakeEventSource.CLOSED)
  vi.advanceTimersByTime(5000)
  expect(FakeEventSource.opened.map(({ url }) => url)).toEqual(['/stream?after=40', '/stream?after=41'])
})

test('stays closed once closed', () => {
  const { close } = follow()
  FakeEventSource.latest.fail(FakeEventSource.CLOSED)
  close()
  vi.advanceTimersByTime(60_000)
  expect(FakeEventSource.opened).toHaveLength(1)
})
