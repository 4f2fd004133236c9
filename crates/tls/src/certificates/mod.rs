//! Certificates and keys: files, the choice by name, tickets, signatures, renewal.
