import { vi } from 'vitest'

/** Replaces the browser's EventSource in tests, which control the network. */
export class FakeEventSource extends EventTarget {
  static readonly CONNECTING = 0
  static readonly OPEN = 1
  static readonly CLOSED = 2
  static opened: FakeEventSource[] = []

  readyState = FakeEventSource.CONNECTING
  onopen: (() => void) | null = null
  onerror: (() => void) | null = null

  constructor(readonly url: string) {
    super()
    FakeEventSource.opened.push(this)
  }

  static install(): void {
    FakeEventSource.opened = []
    vi.stubGlobal('EventSource', FakeEventSource)
  }

  static get latest(): FakeEventSource {
    const source = FakeEventSource.opened.at(-1)
    if (source === undefined) throw new Error('no stream was opened')
    return source
  }

  open(): void {
    this.readyState = FakeEventSource.OPEN
    this.onopen?.()
  }

  send(event: { seq: number; type: string; round?: number }): void {
    this.dispatchEvent(new MessageEvent(event.type, { data: JSON.stringify(event), lastEventId: String(event.seq) }))
  }

  fail(readyState: number): void {
    this.readyState = readyState
    this.onerror?.()
  }

  close(): void {
    this.readyState = FakeEventSource.CLOSED
  }
}
